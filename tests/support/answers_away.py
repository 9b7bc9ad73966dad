"""What answers while Redis is away."""

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion
from shadowtime.shared.errors import StoreError


class Away:
    """Redis away."""

    async def advise(self, question: AdviceQuestion) -> Advice:
        raise StoreError("Redis cannot be used: refused")

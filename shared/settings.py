"""Settings of everything that talks to Kafka or Redis, from the environment or from flags; one model for all."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

from shared.errors import SettingsError
from shared.http_access import http_url
from shared.message import LONGEST


class Settings(BaseSettings):
    """Read once, at the start of a process.

    Each field is `--field-name` on the command line of a worker and `SHADOWTIME_FIELD_NAME` in the environment; a flag
    wins. Secrets are hidden wherever settings are shown.
    """

    model_config = SettingsConfigDict(
        env_prefix="SHADOWTIME_",
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_prog_name="python -m services STAGE",
        cli_hide_none_type=True,
    )

    kafka_bootstrap: str = Field("127.0.0.1:9092", description="brokers, as HOST:PORT,HOST:PORT")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how to talk to them"
    )
    kafka_ca_file: Path | None = Field(None, description="certificate authority of the brokers (PEM)")
    kafka_certificate_file: Path | None = Field(None, description="our certificate (PEM)")
    kafka_key_file: Path | None = Field(None, description="its key (PEM)")
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="how to log in under SASL"
    )
    kafka_username: str | None = Field(None, description="user under SASL")
    kafka_password: SecretStr | None = Field(None, description="password under SASL")
    redis_url: str = Field("redis://127.0.0.1:6379/0", description="rediss:// for TLS; without the password")
    redis_username: str | None = Field(None, description="user of Redis")
    redis_password: SecretStr | None = Field(None, description="password of Redis")
    redis_ca_file: Path | None = Field(None, description="certificate authority of Redis (PEM)")
    partitions: Annotated[int, Field(ge=1, le=10_000)] = Field(8, description="partitions of each new topic")
    replication_factor: Annotated[int, Field(ge=1)] = Field(1, description="replicas of each new topic")
    retention_hours: Annotated[int, Field(ge=-1)] = Field(
        -1, description="hours that new topics keep messages; -1 for ever, as an open run needs its whole log"
    )
    max_message_bytes: Annotated[int, Field(ge=1_000)] = Field(
        1_000_000, description="largest message taken in; a larger one is a dead letter"
    )
    snapshot_every: Annotated[int, Field(ge=1)] = Field(2_000, description="events of a run between two snapshots")
    batch_size: Annotated[int, Field(ge=1)] = Field(200, description="most events in one transaction")
    connect_seconds: Annotated[float, Field(gt=0)] = Field(8.0, description="patience with a server at the start")
    barrier_seconds: Annotated[float, Field(gt=0)] = Field(
        120.0, description="patience of a replay while nothing is answered"
    )
    watchdog_seconds: Annotated[float, Field(gt=0)] = Field(
        60.0, description="a worker that is behind and makes no progress for so long ends itself"
    )
    sample_seconds: Annotated[int, Field(ge=0, le=LONGEST)] = Field(
        3_600, description="seconds of the log between two samples of the scoreboard's figures; 0 for none"
    )
    victoria_metrics_url: str = Field(
        "http://127.0.0.1:8428", description="where samples are written; no password in it"
    )
    victoria_metrics_username: str | None = Field(None, description="user of VictoriaMetrics")
    victoria_metrics_password: SecretStr | None = Field(None, description="password of VictoriaMetrics")
    grafana_url: str | None = Field(None, description="the Grafana whose Live shows decisions; none for no such stream")
    grafana_username: str | None = Field(None, description="user of Grafana; none if the password is a token")
    grafana_password: SecretStr | None = Field(None, description="password of Grafana, or a service account's token")
    web_host: str = Field("127.0.0.1", description="where /health and /metrics listen")
    web_port: Annotated[int, Field(ge=0, le=65_535)] = Field(6066, description="their port; 0 for none")
    log_format: Literal["text", "json"] = Field("text", description="how log lines look")

    @field_validator("redis_url", "victoria_metrics_url", "grafana_url")
    @classmethod
    def _without_password(cls, url: str | None, field: ValidationInfo) -> str | None:
        if url is not None and urlsplit(url).password:
            setting = str(field.field_name).removesuffix("url").replace("_", "-") + "password"
            raise ValueError(f"leave the password out of the URL; it has a setting of its own, {setting}")
        return url

    @field_validator("victoria_metrics_url", "grafana_url")
    @classmethod
    def _over_http(cls, url: str | None) -> str | None:
        return url if url is None else http_url(url)


def read_settings(flags: list[str] | None = None) -> Settings:
    """Return the settings that environment and `flags` give.

    Raises
    ------
    SettingsError
        If a flag is unknown or a value out of range; names it.
    """
    try:
        return Settings(_cli_parse_args=flags or False, _cli_exit_on_error=False)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise SettingsError(f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except SourceError as error:
        raise SettingsError(str(error)) from None

"""The hidden Markov model of run times: filter, learning, predictor."""

from shadowtime.services.runtime_distribution.hmm.predictor import Hmm, HmmSettings

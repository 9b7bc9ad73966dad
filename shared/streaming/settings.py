"""Settings of everything that talks to Kafka or Redis, from the environment or from flags; one model for all."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import SettingsError, in_plain_words
from shadowtime.shared.quoting import among, truncate
from shadowtime.shared.streaming.role_settings import (
    FOLLOW_PORT,
    OWN,
    SERVERS,
    SHADOW_PORT,
    applicable_settings,
    file_of,
    read_file,
    read_kafka_file,
    read_secret,
)
from shadowtime.shared.streaming.urls import has_password, http_url, kafka_servers, redis_url


class Settings(BaseSettings):
    """The settings of a process, read once at its start.

    Each field is `--field-name` on the command line of a worker and `SHADOWTIME_FIELD_NAME` in the environment; a flag
    wins. An empty variable counts as not set. A file with a password can be named instead of the password. Secrets are
    hidden wherever settings are shown.
    """

    model_config = SettingsConfigDict(
        env_prefix="SHADOWTIME_",
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_prog_name="shadowtime serve STAGE",
        cli_hide_none_type=True,
    )

    kafka_bootstrap: str = Field("127.0.0.1:9092", description="brokers, as HOST:PORT,HOST:PORT")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="protocol of the connections to the brokers"
    )
    kafka_ca_file: Path | None = Field(None, description="certificate authority of the brokers (PEM)")
    kafka_certificate_file: Path | None = Field(None, description="certificate of this client, for Kafka (PEM)")
    kafka_key_file: Path | None = Field(None, description="private key of that certificate (PEM)")
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="mechanism of the login under SASL"
    )
    kafka_username: str | None = Field(None, description="user of Kafka under SASL")
    kafka_password: SecretStr | None = Field(None, description="password of Kafka under SASL")
    kafka_password_file: Path | None = Field(None, description="file with the password of Kafka")
    redis_url: str = Field(
        "redis://127.0.0.1:6379/0",
        description="URL of Redis without the password; rediss:// for TLS, redis+cluster://HOST:PORT,HOST:PORT for a "
        "Redis Cluster",
    )
    redis_username: str | None = Field(None, description="user of Redis")
    redis_password: SecretStr | None = Field(None, description="password of Redis")
    redis_password_file: Path | None = Field(None, description="file with the password of Redis")
    redis_ca_file: Path | None = Field(None, description="certificate authority of Redis (PEM)")
    state_secret: SecretStr | None = Field(None, description="key of the seals on a stage's state in Redis")
    state_secret_file: Path | None = Field(None, description="file with the key of the seals")
    partitions: Annotated[int, Field(ge=1, le=10_000)] = Field(8, description="partitions of each new topic")
    replication_factor: Annotated[int, Field(ge=1)] = Field(1, description="replicas of each new topic")
    retention_hours: Annotated[int, Field(ge=-1)] = Field(
        -1, description="hours that new topics keep messages; -1 for ever, because rebuild needs the whole log"
    )
    max_message_bytes: Annotated[int, Field(ge=1_000)] = Field(
        1_000_000, description="largest accepted message, in bytes; a larger one is a dead letter"
    )
    handler_seconds: Annotated[float, Field(gt=0)] = Field(
        60.0, description="seconds of processor time for an event; a run with an event that takes longer is quarantined"
    )
    run_retention_hours: Annotated[int, Field(ge=-1)] = Field(
        720, description="hours for which an open run is kept after its last event; -1 or 0 for ever"
    )
    snapshot_every: Annotated[int, Field(ge=1)] = Field(2_000, description="maximum events of a run between snapshots")
    batch_size: Annotated[int, Field(ge=1)] = Field(200, description="maximum events in one transaction")
    memory_mb: Annotated[int, Field(ge=0)] = Field(
        0, description="memory that a worker may use, in MB; 0 for all of the machine or of its control group"
    )
    connect_seconds: Annotated[float, Field(gt=0)] = Field(8.0, description="seconds to wait for a server at the start")
    barrier_seconds: Annotated[float, Field(gt=0)] = Field(
        120.0, description="seconds without an answer after which a replay ends with an error"
    )
    watchdog_seconds: Annotated[float, Field(gt=0)] = Field(
        60.0, description="seconds without progress after which a worker that is behind ends itself"
    )
    sample_seconds: Annotated[int, Field(ge=0, le=MAX_DURATION)] = Field(
        3_600, description="seconds of the log between two samples of the scoreboard's figures; 0 for none"
    )
    victoria_metrics_url: str = Field(
        "http://127.0.0.1:8428", description="URL of VictoriaMetrics, for samples; without the password"
    )
    victoria_metrics_username: str | None = Field(None, description="user of VictoriaMetrics")
    victoria_metrics_password: SecretStr | None = Field(None, description="password of VictoriaMetrics")
    victoria_metrics_password_file: Path | None = Field(None, description="file with the password of VictoriaMetrics")
    victoria_metrics_ca_file: Path | None = Field(None, description="certificate authority of VictoriaMetrics (PEM)")
    grafana_url: str | None = Field(None, description="URL of the Grafana that shows decisions live")
    grafana_username: str | None = Field(None, description="user of Grafana; none if the password is a token")
    grafana_password: SecretStr | None = Field(None, description="password of Grafana, or a service account's token")
    grafana_password_file: Path | None = Field(None, description="file with the password of Grafana, or the token")
    web_host: str = Field("127.0.0.1", description="address at which /health and /metrics are served")
    web_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        6066,
        description=f"port of /health and /metrics, by default {FOLLOW_PORT} of a follower, {SHADOW_PORT} of shadows; "
        "0 for none",
    )
    web_names: str = Field(
        "",
        description="host names to which the pages answer, as NAME,NAME, besides localhost and the machine's addresses",
    )
    log_format: Literal["text", "json"] = Field("text", description="format of log lines")

    @property
    def max_output_bytes(self) -> int:
        """The largest output of a stage, in bytes. A decision may be many times as large as its input."""
        return 8 * self.max_message_bytes

    @property
    def state_key(self) -> bytes:
        """The key of the seals on the state in Redis; empty if there is none."""
        return b"" if self.state_secret is None else self.state_secret.get_secret_value().encode()

    @property
    def run_retention_seconds(self) -> int:
        """Seconds for which an open run without new events is kept; 0 means for ever."""
        return max(0, self.run_retention_hours) * 3_600

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources besides flags: arguments, then variables that are not empty."""
        return init_settings, EnvSettingsSource(settings_cls, env_ignore_empty=True)

    @model_validator(mode="before")
    @classmethod
    def _with_passwords_of_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name in (*(f"{server}_password" for server in SERVERS), "state_secret"):
            path = values.get(f"{name}_file")
            if path is None:
                continue
            if values.get(name) is not None:
                raise ValueError(f"{name} and {name}_file are both set; set only one of them")
            try:
                read[name] = read_secret(Path(path))
            except ValueError as error:
                raise ValueError(f"{name}_file: {error}") from None

        return values | read

    @field_validator("redis_url", "victoria_metrics_url", "grafana_url")
    @classmethod
    def _without_password(cls, url: str | None, field: ValidationInfo) -> str | None:
        if url is not None and has_password(url):
            setting = str(field.field_name).removesuffix("url").replace("_", "-") + "password"
            raise ValueError(f"the URL contains a password; leave it out, and use the setting {setting}")
        return url

    @field_validator("kafka_bootstrap")
    @classmethod
    def _of_kafka(cls, servers: str) -> str:
        return kafka_servers(servers)

    @field_validator("redis_url")
    @classmethod
    def _of_redis(cls, url: str) -> str:
        return redis_url(url)

    @field_validator("victoria_metrics_url", "grafana_url")
    @classmethod
    def _over_http(cls, url: str | None) -> str | None:
        return url if url is None else http_url(url)


def read_settings(flags: list[str] | None = None, role: str | None = None) -> Settings:
    """Return the settings from command-line `flags` and the environment, with a role's settings file as defaults.

    Raise `SettingsError` if the file cannot be read, a setting is unknown, or a value is invalid. The error names it.
    """
    path = None if role is None else file_of(role)
    defaults = OWN.get(role or "", {}) | ({} if path is None else read_file(path))
    if not defaults:
        return _made(flags, {})
    _require_known(path, defaults, Settings.model_fields)
    options = _made(flags, {})
    values = applicable_settings(defaults, {name: getattr(options, name) for name in options.model_fields_set})
    return _made(flags, values)


def settings_of_other_kafka(servers: str, path: Path | None) -> Settings:
    """Return settings for brokers that are not ours, with the login in a settings file; without one, no login.

    Our own login is not among them, wherever it is set: no password is sent to a server where it does not belong.

    Raise `SettingsError` if the file cannot be read, or a value is invalid.
    """
    own = {
        name: field.default
        for name, field in Settings.model_fields.items()
        if name.startswith("kafka_") and name != "kafka_bootstrap"
    }
    stated = {} if path is None else read_kafka_file(path)
    _require_known(path, stated, own)
    return _made(None, own | stated | {"kafka_bootstrap": servers})


def _require_known(path: Path | None, stated: Collection[str], known: Collection[str]) -> None:
    if unknown := sorted(set(stated) - set(known)):
        raise SettingsError(f"{path}: unknown setting {unknown[0]}{among(unknown[0], sorted(known))}")


def _made(flags: list[str] | None, values: dict[str, Any]) -> Settings:
    try:
        return Settings(_cli_parse_args=flags or False, _cli_exit_on_error=False, **values)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise SettingsError(f"{_named(first['loc'], flags or [])}: {truncate(in_plain_words(first))}") from None
    except SourceError as error:
        unknown = str(error).removeprefix("error parsing CLI: ").replace("unrecognized arguments:", "unknown setting")
        raise SettingsError(f"{truncate(unknown)}; `shadowtime settings` prints all") from None


def _named(place: tuple[int | str, ...], flags: list[str]) -> str:
    """Return the name of a setting for the user: its flag if they gave that, else the name of the setting."""
    if not place:
        return "settings"
    flag = f"--{str(place[0]).replace('_', '-')}"
    is_set = any(argument.partition("=")[0] == flag for argument in flags)
    return flag if is_set else f"setting {'.'.join(map(str, place))}"

"""A certificate for the servers of a stack, and the authority that clients trust instead of the system's authorities.

The authority signs once, then its key is deleted. Nobody can make another certificate that these clients trust.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.server import ServerError

DAYS = 825
RENEW_SECONDS = 30 * 86_400
"""A certificate that is valid for less time than this is renewed when the stack starts."""

LOCAL = (f"IP:{HOST}", "DNS:localhost")

EXTENSIONS = """[authority]
basicConstraints=critical,CA:TRUE,pathlen:0
keyUsage=critical,keyCertSign
subjectKeyIdentifier=hash
[server]
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectAltName={names}
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
[req]
distinguished_name=name
[name]
"""


def certify(folder: Path, names: Sequence[str] = LOCAL) -> None:
    """Write `ca.pem`, `server.pem` and `server.key` into a folder, unless they are valid for another `RENEW_SECONDS`.

    `names` are the names of the server, such as `DNS:kafka`. To change them, empty the folder first.

    Raise `ServerError` if openssl is not on PATH, or fails.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ServerError("certificates are made by openssl, which is not on PATH (apt-get install openssl)")
    made = [folder / name for name in ("ca.pem", "server.key", "server.pem")]
    last = [openssl, "x509", "-checkend", str(RENEW_SECONDS), "-noout", "-in", str(made[-1])]
    if all(path.exists() for path in made) and subprocess.run(last, capture_output=True, check=False).returncode == 0:  # noqa: S603
        return
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        part = Path(temporary)
        (part / "extensions").write_text(EXTENSIONS.format(names=",".join(names)))
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", "extensions"]
        x509 = ["-x509", "-days", str(DAYS), "-extensions", "authority", "-subj", "/CN=authority of a Shadowtime stack"]
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions"]
        out = ["-out", "server.pem"]
        for command in (
            ["req", *new, *x509, "-keyout", "ca.key", "-out", "ca.pem"],
            ["req", *new, "-subj", f"/CN={names[0].partition(':')[2]}", "-keyout", "server.key", "-out", "server.csr"],
            ["x509", "-req", "-days", str(DAYS), "-in", "server.csr", *signed, "-extensions", "server", *out],
        ):
            done = subprocess.run([openssl, *command], cwd=part, capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode != 0:
                raise ServerError(f"openssl {command[0]} failed: {done.stderr.strip()[-300:]}")

        for path in made:  # the certificate comes last: after an interruption all files are made again
            (part / path.name).chmod(0o600)
            (part / path.name).replace(path)

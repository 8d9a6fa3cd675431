"""Certificates for tests, made by openssl when they are needed: an authority of one's own and what it signs.

    authority = Authority(folder)                      # authority.path: what a client is given as ca_file
    good = authority.certificate("localhost")          # a path: certificate and key in one file; for 127.0.0.1 as well
    old = authority.certificate("localhost", expired=True)
    other = authority.certificate("elsewhere.example")
    alone = self_signed(folder)
"""
import os
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)}: {done.stdout.decode(errors='replace')}")


def names(host):
    more = ",IP:127.0.0.1" if host == "localhost" else ""
    return f"subjectAltName=DNS:{host}{more}"


def joined(folder, name, *parts):
    """One file of several, as servers like it."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as whole:
        for part in parts:
            with open(part, encoding="ascii") as file:
                whole.write(file.read())
    return path


def self_signed(folder, host="localhost"):
    """Signed by nobody but itself."""
    key, certificate = os.path.join(folder, "self.key"), os.path.join(folder, "self.crt")
    openssl("req", "-x509", *KEY, "-keyout", key, "-out", certificate, "-days", "2", "-subj", f"/CN={host}",
            "-addext", names(host))
    return joined(folder, "self.pem", certificate, key)


class Authority:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.n_made = 0
        self.key = os.path.join(folder, "authority.key")
        self.path = os.path.join(folder, "authority.pem")
        openssl("req", "-x509", *KEY, "-keyout", self.key, "-out", self.path, "-days", "2", "-subj", "/CN=tests")

    def certificate(self, host, expired=False):
        self.n_made += 1
        name = os.path.join(self.folder, f"made{self.n_made}")
        openssl("req", *KEY, "-keyout", name + ".key", "-out", name + ".csr", "-subj", f"/CN={host}")
        with open(name + ".ext", "w", encoding="ascii") as file:
            file.write(names(host) + "\n")
        # Debian 12's `x509 -req` knows no dates in the past, but it takes a number of days below zero.
        openssl("x509", "-req", "-in", name + ".csr", "-CA", self.path, "-CAkey", self.key, "-set_serial",
                str(1000 + self.n_made), "-days", "-1" if expired else "2", "-extfile", name + ".ext",
                "-out", name + ".crt")
        return joined(self.folder, f"made{self.n_made}.pem", name + ".crt", name + ".key")

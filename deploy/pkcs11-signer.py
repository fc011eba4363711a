#!/usr/bin/env python3
"""Signs digests with a secp256k1 key in a PKCS#11 module, for `signer.kind = "command"`.

One JSON line for each request on standard input, one for each answer on standard output (docs/policy.md).
Uses nothing but Python's own ctypes; the module's library stays out of the withdrawal worker. The PIN is
read from a file and never shown. A failed signature is answered with its PKCS#11 number, and ends the
program: whether its session is lost, modules tell by numbers of their own, and the worker starts it anew. A
PIN that is refused is not tried again before its file has changed, since tokens are locked by a few tries:
neither while the program runs, nor by those of other wallets, nor behind a start. A file beside the PIN's, or
where none can be made there in a folder causeway-UID of temporary files, says which one was refused.

A home with several wallets names the key of each: --key 0xADDRESS=LABEL, once for each.
"""
import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import re
import stat
import sys
import tempfile

CKU_USER = 1
CKF_SERIAL_SESSION = 4
CKM_ECDSA = 0x1041
CKA_CLASS, CKO_PRIVATE_KEY, CKA_LABEL = 0, 3, 3
CKR_OK, CKR_USER_ALREADY_LOGGED_IN = 0, 0x100
# Incorrect, invalid, of another length, expired, locked.
CKR_PIN = range(0xA0, 0xA5)

ULONG = ctypes.c_ulong
LABEL_BYTES = 32
MOST_SLOTS = 1024
KEY_OF_WALLET = re.compile(r"(0x[0-9a-fA-F]{40})=(.+)", re.DOTALL)
# CK_TOKEN_INFO is shorter everywhere; only its first field, the label, is read.
TOKEN_INFO_BYTES = 1024


class Attribute(ctypes.Structure):
    _fields_ = [("type", ULONG), ("value", ctypes.c_void_p), ("length", ULONG)]


class Mechanism(ctypes.Structure):
    _fields_ = [("mechanism", ULONG), ("parameter", ctypes.c_void_p), ("length", ULONG)]


class Pkcs11Error(Exception):
    """A function of the module returned something other than CKR_OK."""


class PinRefused(Pkcs11Error):
    """Another try with the same PIN is one less that the token allows."""


class UnknownWallet(Exception):
    """No key is named for the wallet: another one's signature would freeze it."""


class NoKeys:
    """Stands where the token refused the PIN: nothing is asked of it any more."""

    def __init__(self, refusal):
        self.refusal = refusal

    def sign(self, _wallet, _digest):
        raise self.refusal


class Keys:
    """Private keys in one open session, each looked for when its wallet asks: one that is missing is missed
    by no other wallet."""

    def __init__(self, module, token, labels, pin):
        self.library = ctypes.CDLL(module)
        self.call("C_Initialize", None)
        self.session = ULONG()
        slot = self.find_slot(token.encode())
        self.call("C_OpenSession", slot, ULONG(CKF_SERIAL_SESSION), None, None,
                  ctypes.byref(self.session))
        self.call("C_Login", self.session, ULONG(CKU_USER), pin, ULONG(len(pin)),
                  allowed=(CKR_OK, CKR_USER_ALREADY_LOGGED_IN))
        self.labels = labels
        self.found = {}

    def call(self, name, *arguments, allowed=(CKR_OK,)):
        function = getattr(self.library, name)
        function.restype = ULONG
        result = function(*arguments)
        if result not in allowed:
            kind = PinRefused if result in CKR_PIN else Pkcs11Error
            raise kind(f"{name}: {result:#x}")

    def find_slot(self, wanted):
        count = ULONG(MOST_SLOTS)
        slots = (ULONG * MOST_SLOTS)()
        self.call("C_GetSlotList", ctypes.c_ubyte(1), slots, ctypes.byref(count))
        untold = []
        for slot in slots[: count.value]:
            info = ctypes.create_string_buffer(TOKEN_INFO_BYTES)
            try:
                self.call("C_GetTokenInfo", ULONG(slot), info)
            except Pkcs11Error as error:  # a card that is foreign, broken or was pulled: not the one meant
                untold.append(f"slot {slot}: {error}")
                continue
            if info.raw[:LABEL_BYTES].rstrip(b" \0") == wanted:
                return ULONG(slot)
        raise Pkcs11Error("no token has this label" + (f" ({', '.join(untold)})" if untold else ""))

    def find_key(self, label):
        kind = ULONG(CKO_PRIVATE_KEY)
        name = ctypes.create_string_buffer(label, len(label))
        template = (Attribute * 2)(
            Attribute(CKA_CLASS, ctypes.addressof(kind), ctypes.sizeof(kind)),
            Attribute(CKA_LABEL, ctypes.addressof(name), len(label)),
        )
        found, count = (ULONG * 2)(), ULONG()
        self.call("C_FindObjectsInit", self.session, template, ULONG(2))
        self.call("C_FindObjects", self.session, found, ULONG(2), ctypes.byref(count))
        self.call("C_FindObjectsFinal", self.session)
        if count.value != 1:
            raise Pkcs11Error("not exactly one private key has this label")
        return ULONG(found[0])

    def sign(self, wallet, digest):
        label = self.labels.get(None, self.labels.get(wallet.lower()))
        if label is None:
            raise UnknownWallet(f"no key is named for {wallet}: --key {wallet}=LABEL")
        if label not in self.found:
            self.found[label] = self.find_key(label.encode())
        key = self.found[label]
        mechanism = Mechanism(CKM_ECDSA, None, 0)
        self.call("C_SignInit", self.session, ctypes.byref(mechanism), key)
        out, length = ctypes.create_string_buffer(128), ULONG(128)
        self.call("C_Sign", self.session, digest, ULONG(len(digest)), out, ctypes.byref(length))
        if length.value != 64:
            raise Pkcs11Error("the signature has another length: the key is on another curve")
        return out.raw[:32], out.raw[32:64]


def labels_of(parser, keys):
    """Labels by the wallet that each is for, in lower case; None for the one that is every wallet's."""
    found = {}
    for key in keys:
        named = KEY_OF_WALLET.fullmatch(key)
        wallet, label = (named[1].lower(), named[2]) if named else (None, key)
        if wallet in found:
            parser.error("--key: one for each wallet, 0xADDRESS=LABEL where there are several")
        found[wallet] = label
    if None in found and len(found) > 1:
        parser.error("--key: either one LABEL alone, or 0xADDRESS=LABEL for each wallet")
    return found


class Refusal:
    """What was said of a PIN that a token refused, kept for as long as the PIN's file is the same.

    Other users may write where temporary files lie. What they leave there is neither believed nor waited for.
    """

    def __init__(self, options, pin_file):
        name = f"{options.module}\n{options.token}\n{os.path.realpath(options.pin_file)}"
        self.number = hashlib.sha256(name.encode()).hexdigest()[:16]
        self.beside = os.path.realpath(options.pin_file) + f".refused-{self.number}"
        self.is_kept = stat.S_ISREG(pin_file.st_mode)
        self.key = f"{pin_file.st_ino} {pin_file.st_size} {pin_file.st_mtime_ns}"

    def paths(self, makes_folder):
        if not self.is_kept:
            return
        yield self.beside
        folder = os.path.join(tempfile.gettempdir(), f"causeway-{os.getuid()}")
        if makes_folder and not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            yield os.path.join(folder, f"pin-{self.number}.refused")

    @contextlib.contextmanager
    def opened(self, path, flags, mode):
        # A pipe would be waited for.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags, 0o600), mode) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.getuid(), 0):
                raise OSError("not a file of this user")
            yield file

    def read(self):
        with contextlib.suppress(OSError):
            for path in self.paths(makes_folder=False):
                with contextlib.suppress(OSError), self.opened(path, os.O_RDONLY, "rb") as file:
                    key, _, text = file.read(1000).decode(errors="replace").partition("\n")
                    if key == self.key:
                        return text
        return None

    def write(self, text):
        """Whether it could be written down."""
        with contextlib.suppress(OSError):
            for path in self.paths(makes_folder=True):
                flags = os.O_WRONLY | os.O_CREAT
                with contextlib.suppress(OSError), self.opened(path, flags, "wb") as file:
                    file.truncate()
                    file.write(f"{self.key}\n{text}".encode())
                    file.flush()
                    return True
        return False


def open_keys(options, labels):
    with open(options.pin_file, "rb") as file:
        # One wallet's program after the other: of a wrong PIN each would take a try.
        with contextlib.suppress(OSError):  # where files of others' machines cannot be locked
            fcntl.flock(file, fcntl.LOCK_EX)
        refusal = Refusal(options, os.fstat(file.fileno()))
        text = refusal.read()
        if text is None:
            try:
                # Blanks are part of it, as of every passphrase of the kit; line ends are not.
                pin = file.read().strip(b"\r\n")
                return Keys(options.module, options.token, labels, pin)
            except PinRefused as error:
                text = (f"{error}: mend the PIN's file (touch it where the token was mended), then start the "
                        "worker anew")
                if not refusal.write(text):
                    text += "; it can be noted nowhere: every start and every wallet takes one more try"
        return NoKeys(PinRefused(text))


def answer(keys, line):
    """Writes the answer to one line; raises what the module failed with behind it."""
    request = json.loads(line)
    digest = bytes.fromhex(request["digest"][2:])
    if request["method"] != "sign" or len(digest) != 32:
        return tell(request, error="only digests of 32 bytes are signed")
    try:
        r, s = keys.sign(request["address"], digest)
    except (PinRefused, UnknownWallet) as error:
        return tell(request, error=str(error))
    except Pkcs11Error as error:
        tell(request, error=str(error))
        raise
    tell(request, r="0x" + r.hex(), s="0x" + s.hex())


def tell(request, **fields):
    print(json.dumps({"id": request["id"], **fields}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", required=True, help="the vendor's PKCS#11 library")
    parser.add_argument("--token", required=True, help="label of the token")
    parser.add_argument("--key", required=True, action="append",
                        help="label of the private key; 0xADDRESS=LABEL for each of several wallets")
    parser.add_argument("--pin-file", required=True, help="file with the user's PIN, mode 600")
    options = parser.parse_args()
    labels = labels_of(parser, options.key)
    try:
        keys = open_keys(options, labels)
        for line in sys.stdin:
            answer(keys, line)
    except (OSError, Pkcs11Error) as error:
        sys.exit(f"pkcs11-signer: {error}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Signs digests with a secp256k1 key in a PKCS#11 module, for `signer.kind = "command"`.

One JSON line for each request on standard input, one for each answer on standard output (docs/policy.md).
Uses nothing but Python's own ctypes; the module's library stays out of the withdrawal worker. The PIN is
read from a file and never shown. A failed signature is answered with its PKCS#11 number, and ends the
program: whether its session is lost, modules tell by numbers of their own, and the worker starts it anew. A
PIN that is refused is not tried again while the program runs, since tokens are locked by a few tries.
"""
import argparse
import ctypes
import json
import sys

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


class NoKey:
    """Stands where the token refused the PIN: nothing is asked of it any more."""

    def __init__(self, refusal):
        self.refusal = refusal

    def sign(self, _digest):
        raise self.refusal


class Key:
    """One private key in an open session."""

    def __init__(self, module, token, label, pin):
        self.library = ctypes.CDLL(module)
        self.call("C_Initialize", None)
        self.session = ULONG()
        slot = self.find_slot(token.encode())
        self.call("C_OpenSession", slot, ULONG(CKF_SERIAL_SESSION), None, None,
                  ctypes.byref(self.session))
        self.call("C_Login", self.session, ULONG(CKU_USER), pin, ULONG(len(pin)),
                  allowed=(CKR_OK, CKR_USER_ALREADY_LOGGED_IN))
        self.key = self.find_key(label.encode())

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
        for slot in slots[: count.value]:
            info = ctypes.create_string_buffer(TOKEN_INFO_BYTES)
            self.call("C_GetTokenInfo", ULONG(slot), info)
            if info.raw[:LABEL_BYTES].rstrip(b" \0") == wanted:
                return ULONG(slot)
        raise Pkcs11Error("no token has this label")

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

    def sign(self, digest):
        mechanism = Mechanism(CKM_ECDSA, None, 0)
        self.call("C_SignInit", self.session, ctypes.byref(mechanism), self.key)
        out, length = ctypes.create_string_buffer(128), ULONG(128)
        self.call("C_Sign", self.session, digest, ULONG(len(digest)), out, ctypes.byref(length))
        if length.value != 64:
            raise Pkcs11Error("the signature has another length: the key is on another curve")
        return out.raw[:32], out.raw[32:64]


def open_key(options, pin):
    try:
        return Key(options.module, options.token, options.key, pin)
    except PinRefused as error:
        return NoKey(PinRefused(f"{error}: mend the PIN's file, then start the worker anew"))


def answer(key, line):
    """Writes the answer to one line; raises what the module failed with behind it."""
    request = json.loads(line)
    digest = bytes.fromhex(request["digest"][2:])
    if request["method"] != "sign" or len(digest) != 32:
        return tell(request, error="only digests of 32 bytes are signed")
    try:
        r, s = key.sign(digest)
    except PinRefused as error:
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
    parser.add_argument("--key", required=True, help="label of the private key")
    parser.add_argument("--pin-file", required=True, help="file with the user's PIN, mode 600")
    options = parser.parse_args()
    with open(options.pin_file, "rb") as file:
        pin = file.read().strip()
    try:
        key = open_key(options, pin)
        for line in sys.stdin:
            answer(key, line)
    except (OSError, Pkcs11Error) as error:
        sys.exit(f"pkcs11-signer: {error}")


if __name__ == "__main__":
    main()

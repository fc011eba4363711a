"""Runs deploy/pkcs11-signer.py over a module that a test makes up: python3 pkcs11-module.py SIGNER KEY STATE
[NAME...], where each NAME is a --key; by default one that is every wallet's.

STATE is a file with the number that C_SignInit fails with; a new session takes the file away, as one that is
opened anew behind a lost one works. STATE.pin has the number that C_Login fails with, STATE.logins a line for
each try, STATE.given the PIN of the last one. STATE.slot has the number that C_GetTokenInfo fails with for
the first of two slots; with STATE.alone there is no other one. The PIN's file is STATE.secret, or none that
is kept. The key is 0x hex.
"""
import ctypes
import os
import runpy
import sys

_, SIGNER, KEY, STATE, *NAMES = sys.argv
P, N = 2**256 - 2**32 - 977, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)


def add(one, other):
    if one is None or other is None:
        return one or other
    (x, y), (u, v) = one, other
    if x == u and (y + v) % P == 0:
        return None
    slope = 3 * x * x * pow(2 * y, -1, P) if one == other else (v - y) * pow(u - x, -1, P)
    a = (slope * slope - x - u) % P
    return a, (slope * (x - a) - y) % P


def times(factor, point):
    result = None
    while factor:
        if factor & 1:
            result = add(result, point)
        point, factor = add(point, point), factor >> 1
    return result


def sign(digest):
    k = 0x1234567 + int.from_bytes(digest, "big") % N
    r = times(k, G)[0] % N
    s = pow(k, -1, N) * (int.from_bytes(digest, "big") + r * int(KEY, 16)) % N
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class Module:
    """What the signer calls, and nothing else."""

    def __init__(self, _path):
        self.failure = 0
        if os.path.exists(STATE):
            with open(STATE, encoding="ascii") as file:
                self.failure = int(file.read(), 16)
            os.remove(STATE)

    def __getattr__(self, name):
        def function(*arguments):
            return getattr(Module, "on_" + name, lambda *_: 0)(self, *arguments)
        return function

    def on_C_GetSlotList(self, _present, slots, count):
        slots[0], slots[1] = 0, 1
        count._obj.value = 1 if os.path.exists(STATE + ".alone") else 2
        return 0

    def on_C_GetTokenInfo(self, slot, info):
        if slot.value == 0 and os.path.exists(STATE + ".slot"):
            with open(STATE + ".slot", encoding="ascii") as file:
                return int(file.read(), 16)
        info.raw = b"hot".ljust(32) + bytes(len(info) - 32)
        return 0

    def on_C_FindObjects(self, _session, found, _most, count):
        found[0] = 7
        count._obj.value = 1
        return 0

    def on_C_Login(self, _session, _user, pin, size):
        with open(STATE + ".logins", "a", encoding="ascii") as file:
            file.write("tried\n")
        with open(STATE + ".given", "wb") as file:
            file.write(pin[:size.value])
        if not os.path.exists(STATE + ".pin"):
            return 0
        with open(STATE + ".pin", encoding="ascii") as file:
            return int(file.read(), 16)

    def on_C_SignInit(self, *_):
        return self.failure

    def on_C_Sign(self, _session, digest, _size, out, length):
        out.raw = sign(digest).ljust(len(out), b"\0")
        length._obj.value = 64
        return 0


ctypes.CDLL = Module
keys = [word for name in NAMES or ["wallet"] for word in ("--key", name)]
secret = STATE + ".secret" if os.path.exists(STATE + ".secret") else os.devnull
sys.argv = [SIGNER, "--module", "m", "--token", "hot", *keys, "--pin-file", secret]
runpy.run_path(SIGNER, run_name="__main__")

/** Keystores of version 3: those of ethers open here; wrong ones are refused without a trace. */
import { describe, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { bytesToHex } from "../../../../chain/hex.js";
import { decryptKeystore } from "../../../../chain/signing/keystore.js";

/**
 * The PBKDF2 test vector of the Web3 Secret Storage definition (ethereum.org, section Test
 * Vectors). Its scrypt vector has n = 2^18 with r = 1, which RFC 7914 and OpenSSL forbid.
 */
const PBKDF2_VECTOR = {
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
    ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    kdf: "pbkdf2",
    kdfparams: {
      c: 262_144,
      dklen: 32,
      prf: "hmac-sha256",
      salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
    },
    mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
  },
  id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  version: 3,
};
const VECTOR_KEY = "0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

const wallet = new Wallet(`0x${"4c".repeat(32)}`);
const small = { scrypt: { N: 1_024, r: 8, p: 1 } };
const json = encryptKeystoreJsonSync(
  { address: wallet.address, privateKey: wallet.privateKey },
  "pässphrase",
  small,
);
const changed = (change: (keystore: Record<string, Record<string, unknown>>) => void): string => {
  const keystore = JSON.parse(json) as Record<string, Record<string, unknown>>;
  change(keystore);
  return JSON.stringify(keystore);
};

describe("a keystore", () => {
  it("of the published PBKDF2 vector opens", () => {
    const { privateKey } = decryptKeystore(JSON.stringify(PBKDF2_VECTOR), "testpassword");
    expect(bytesToHex(privateKey)).toBe(VECTOR_KEY);
  });

  it("with the usual scrypt work of wallets opens", () => {
    const usual = encryptKeystoreJsonSync(
      { address: wallet.address, privateKey: wallet.privateKey },
      "secret",
      { scrypt: { N: 131_072, r: 8, p: 1 } },
    );
    expect(bytesToHex(decryptKeystore(usual, "secret").privateKey)).toBe(wallet.privateKey);
  });

  it("written by ethers opens, also with a passphrase beyond ASCII", () => {
    const opened = decryptKeystore(json, "pässphrase");
    expect(opened.address).toBe(wallet.address.toLowerCase());
    expect(bytesToHex(opened.privateKey)).toBe(wallet.privateKey);
  });

  it.each([
    ["half-width katakana", "ﾊﾟｽﾜｰﾄﾞ"],
    ["a fraction", "½ secret"],
    ["a decomposed accent", "pa\u0308ssphrase"],
  ])("whose passphrase was taken as it was typed opens: %s", (_name, passphrase) => {
    const account = { address: wallet.address, privateKey: wallet.privateKey };
    const raw = new TextEncoder().encode(passphrase);
    const typed = encryptKeystoreJsonSync(account, raw, { scrypt: { N: 2, r: 8, p: 1 } });
    expect(bytesToHex(decryptKeystore(typed, passphrase).privateKey)).toBe(wallet.privateKey);
    expect(() => decryptKeystore(typed, `${passphrase}!`)).toThrow(
      expect.objectContaining({ code: "KEYSTORE_WRONG_PASSPHRASE" }),
    );
  });

  it("opens beside blanks in its passphrase file that releases before have cut off", () => {
    const opened = decryptKeystore(json, " pässphrase \t");
    expect(bytesToHex(opened.privateKey)).toBe(wallet.privateKey);
  });

  it("refuses a wrong passphrase, and says nothing of the content", () => {
    expect(() => decryptKeystore(json, "passphrase")).toThrow(
      expect.objectContaining({ code: "KEYSTORE_WRONG_PASSPHRASE" }),
    );
  });

  it("that names another address is refused", () => {
    const other = changed((keystore) => {
      Object.assign(keystore, { address: "11".repeat(20) });
    });
    expect(() => decryptKeystore(other, "pässphrase")).toThrow(
      expect.objectContaining({ code: "KEYSTORE_WRONG_ADDRESS" }),
    );
  });

  it("that is malformed or wants absurd work is refused before any work", () => {
    const absurd = changed((keystore) => {
      Object.assign(keystore["Crypto"]?.["kdfparams"] ?? {}, { n: 2 ** 22, r: 64 });
    });
    const odd = changed((keystore) => {
      Object.assign(keystore["Crypto"]?.["kdfparams"] ?? {}, { n: 1_000 });
    });
    const cipher = changed((keystore) => {
      Object.assign(keystore["Crypto"] ?? {}, { cipher: "aes-256-gcm" });
    });
    for (const text of ["", "{", "[]", "null", '{"version":1}', absurd, odd, cipher]) {
      expect(() => decryptKeystore(text, "pässphrase")).toThrow(
        expect.objectContaining({ code: "KEYSTORE_MALFORMED" }),
      );
    }
  });
});

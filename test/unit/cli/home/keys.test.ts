import { describe, expect, it } from "@jest/globals";
import { createPrivateKey as readPrivateKey, createPublicKey } from "node:crypto";
import { HDNodeWallet, Wallet } from "ethers";
import { toChecksumAddress } from "../../../../chain/address.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { encryptKeystore } from "../../../../chain/signing/keystore.js";
import {
  createNodeKey,
  createValidatorKeyFile,
  createValidatorStateFile,
} from "../../../../cli/home/keys/validator-keys.js";
import { parseValidatorIdentity } from "../../../../node/consensus/signing/validator-key.js";
import {
  createPrivateKey,
  createSeedLine,
  encodeKeyFile,
  parseKeyFile,
  parseKeystoreAddress,
  seedToXpub,
} from "../../../../cli/home/keys/wallet-keys.js";

/** Cheap scrypt: what is tested is the format, not the cost. */
const CHEAP = { n: 1_024, r: 8, p: 1 };

describe("keystores", () => {
  it("are opened by ethers with the same passphrase and only with it", async () => {
    const key = createPrivateKey();
    const text = await encryptKeystore(key, "correct horse ﬁ", CHEAP);
    const wallet = await Wallet.fromEncryptedJson(text, "correct horse ﬁ");
    expect(wallet.privateKey).toBe(bytesToHex(key));
    await expect(Wallet.fromEncryptedJson(text, "wrong")).rejects.toThrow();
    expect(parseKeystoreAddress(text, "f")).toBe(privateKeyToAddress(key));
  });

  it("use the standard cost by default", async () => {
    const text = await encryptKeystore(createPrivateKey(), "p");
    expect(JSON.parse(text).crypto.kdfparams).toMatchObject({ n: 131_072, r: 8, p: 1, dklen: 32 });
  });

  it("give their address in ethers' form too, without 0x", () => {
    const address = privateKeyToAddress(new Uint8Array(32).fill(1));
    const text = JSON.stringify({ address: toChecksumAddress(address).slice(2) });
    expect(parseKeystoreAddress(text, "f")).toBe(address);
    expect(() => parseKeystoreAddress("{}", "f")).toThrow("f is not a keystore");
  });
});

describe("key files", () => {
  it("survive a round trip and never quote their content in a fault", () => {
    const key = createPrivateKey();
    expect(parseKeyFile(encodeKeyFile(key), "f")).toEqual(
      new Uint8Array(hexToBytes(bytesToHex(key))),
    );
    const secret = "0xnot-a-key-but-secret";
    expect(() => parseKeyFile(secret, "/h/faucet.key")).toThrow("/h/faucet.key");
    try {
      parseKeyFile(secret, "/h/faucet.key");
    } catch (error) {
      expect(String(error)).not.toContain("secret");
    }
  });
});

describe("the deposit seed", () => {
  it("gives the xpub whose children are ethers' addresses", async () => {
    const words = createSeedLine();
    const xpub = await seedToXpub(words, "f");
    for (const index of [0, 1, 1_000]) {
      const expected = HDNodeWallet.fromPhrase(words.trim(), "", `m/44'/60'/0'/0/${index}`);
      const derived = HDNodeWallet.fromExtendedKey(xpub).deriveChild(index);
      expect(`${index} ${derived.address}`).toBe(`${index} ${expected.address}`);
    }
  });

  it("knows the published vector of the test mnemonic", async () => {
    // Source: the default accounts of anvil and hardhat.
    const words = "test test test test test test test test test test test junk";
    const first = HDNodeWallet.fromExtendedKey(await seedToXpub(words, "f")).deriveChild(0);
    expect(first.address).toBe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
  });

  it("may be hex, and is refused otherwise", async () => {
    const seed = "ab".repeat(32);
    const expected = HDNodeWallet.fromSeed(`0x${seed}`).derivePath("m/44'/60'/0'/0").neuter();
    expect(await seedToXpub(`${seed}\n`, "f")).toBe(expected.extendedKey);
    await expect(seedToXpub("legal winner thank", "f")).rejects.toThrow("f holds neither");
  });
});

describe("the validator's files", () => {
  it("have CometBFT's shape, and the key pairs belong together", () => {
    const text = createValidatorKeyFile();
    const file = JSON.parse(text);
    expect(Object.keys(file)).toEqual(["address", "pub_key", "priv_key"]);
    expect(file.address).toMatch(/^[0-9A-F]{40}$/);
    const raw = Buffer.from(file.priv_key.value, "base64");
    expect(raw).toHaveLength(64);
    expect(raw.subarray(32).toString("base64")).toBe(file.pub_key.value);
    const pkcs8 = Buffer.concat([
      Buffer.from("302e020100300506032b657004220420", "hex"),
      raw.subarray(0, 32),
    ]);
    const priv = readPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
    const jwk = createPublicKey(priv).export({ format: "jwk" });
    expect(Buffer.from(String(jwk.x), "base64url").toString("base64")).toBe(file.pub_key.value);
    expect(parseValidatorIdentity(text, "f").address).toBe(`0x${file.address.toLowerCase()}`);
  });

  it("start from nothing signed, with a node key of their own", () => {
    expect(JSON.parse(createValidatorStateFile())).toEqual({ height: "0", round: 0, step: 0 });
    expect(JSON.parse(createNodeKey().text).priv_key.type).toBe("tendermint/PrivKeyEd25519");
    expect(() => parseValidatorIdentity("{}", "f")).toThrow("CometBFT");
  });

  it("derive the address as CometBFT does", () => {
    // Source: CometBFT's e2e documentation example: SHA-256 of the public key, first 20 bytes.
    const value = Buffer.alloc(32).toString("base64");
    const text = JSON.stringify({ pub_key: { type: "tendermint/PubKeyEd25519", value } });
    // SHA-256 of 32 zero bytes is 66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925.
    expect(parseValidatorIdentity(text, "f").address).toBe(
      "0x66687aadf862bd776c8fc18b8e9f8e2008971485",
    );
  });
});

/** Signatures on P-256, asked of the precompile by clients and contracts. */
import { createSign, generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { verifyP256 } from "../../../../chain/crypto.js";
import { sha256 } from "../../../../chain/hashes.js";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { FIRST_APP_VERSION } from "../../../../node/settings/app-version.js";
import { NativeChain, request } from "../../../helpers/chains/native-chain.js";
import { chainForTests } from "./stakers-chain.js";

const P256 = parseAddress(`0x${"100".padStart(40, "0")}`);

const native = chainForTests();
const { send, work } = native;

/** Creation code of a contract that hands its call data to `0x100` by an opcode, and gives what comes back. */
function codeAround(opcode: "f2" | "f4", value: "" | "34"): string {
  const asked = `365f5f375f5f365f${value}6101005a${opcode}3d5f5f3e`;
  const end = (asked.length / 2 + 6).toString(16);
  const code = `${asked}60${end}573d5ffd5b3d5ff3`;
  return `0x60${(code.length / 2).toString(16)}8060095f395ff3${code}`;
}

describe("p256", () => {
  /** go-ethereum, core/vm/testdata/precompiles/p256Verify.json. */
  const KNOWN =
    "0x4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4da73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d604aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff37618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e";
  const ONE = `0x${"1".padStart(64, "0")}`;

  const ask = async (data: string, gasLimit = 100_000n) => {
    const result = await work({ kind: "call", request: request({ to: P256, data, gasLimit }) });
    return result.outcome === "success" ? bytesToHex(result.returnData) : result.outcome;
  };

  it("knows the published vector, costs 3,450 gas, and says nothing of anything else", async () => {
    expect(await ask(KNOWN)).toBe(ONE);
    expect(await ask(KNOWN.slice(0, -2))).toBe("0x");
    expect(await ask(`${KNOWN}00`)).toBe("0x");
    expect(await ask("0x")).toBe("0x");
    expect(await ask(`${KNOWN.slice(0, -2)}0f`)).toBe("0x");
    const bytes = hexToBytes(KNOWN);
    for (let word = 0; word < 5; word++) {
      const zeroed = bytes.slice();
      zeroed.fill(0, word * 32, (word + 1) * 32);
      expect([word, await ask(bytesToHex(zeroed))]).toEqual([word, "0x"]);
      const filled = bytes.slice();
      filled.fill(0xff, word * 32, (word + 1) * 32);
      expect([word, await ask(bytesToHex(filled))]).toEqual([word, "0x"]);
    }
    const data = bytes.reduce((gas, byte) => gas + (byte === 0 ? 4n : 16n), 21_000n);
    const { receipt } = await send({ to: P256, data: KNOWN, gasLimit: 200_000n });
    expect(receipt).toMatchObject({ status: 1, gasUsed: data + 3_450n });
    expect(await ask(KNOWN, data + 3_449n)).toBe("error");
  });

  it("answers a contract that lends its account, whatever coins that one was called with", async () => {
    const codes = { delegatecall: codeAround("f4", ""), callcode: codeAround("f2", "34") };
    for (const [name, code] of Object.entries(codes)) {
      const around = await native.chain.deploy(code);
      const asked = request({ to: around, data: KNOWN, value: 5n });
      const result = await work({ kind: "call", request: asked });
      expect([name, result]).toMatchObject([name, { outcome: "success" }]);
      expect([name, bytesToHex((result as { returnData: Uint8Array }).returnData)]).toEqual([
        name,
        ONE,
      ]);
      const { receipt } = await send({ to: around, data: KNOWN, value: 5n });
      expect([name, receipt.status, native.chain.balance(around)]).toEqual([name, 1, 5n]);
    }
  });

  it("takes those coins for its own by the first rules", async () => {
    const first = await NativeChain.open({}, FIRST_APP_VERSION);
    try {
      const around = await first.deploy(codeAround("f4", ""));
      const statuses = [];
      for (const value of [0n, 5n]) {
        const { receipt, own, library } = await first.send({ to: around, data: KNOWN, value });
        expect(library).toEqual(own);
        statuses.push(receipt.status);
      }
      expect(statuses).toEqual([1, 0]);
    } finally {
      await first.close();
    }
  });

  it("agrees with OpenSSL about fresh keys, high s included", () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    for (let round = 0; round < 10; round++) {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const message = Buffer.from(`message ${round}`);
      const signature = createSign("sha256")
        .update(message)
        .sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
      const { x = "", y = "" } = publicKey.export({ format: "jwk" });
      const key = Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
      const digest = sha256(message);
      const signed = { digest, publicKey: key };
      expect(verifyP256({ ...signed, signature })).toBe(true);
      const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
      const other = Buffer.from((order - s).toString(16).padStart(64, "0"), "hex");
      expect(
        verifyP256({ ...signed, signature: Buffer.concat([signature.subarray(0, 32), other]) }),
      ).toBe(true);
      expect(verifyP256({ ...signed, digest: digest.toReversed(), signature })).toBe(false);
    }
  });
});

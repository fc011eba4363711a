/** The BLAKE2b compression precompile against EIP-152's vectors and the library's own. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { createEVM } from "@ethereumjs/evm";
import { createAddressFromString } from "@ethereumjs/util";
import { blake2f } from "../../../../node/execution/precompiles/blake2f.js";
import { createRandom } from "../../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 152);
console.log(`blake2f: seed ${SEED} (CAUSEWAY_TEST_SEED)`);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** EIP-152, test vectors 4 to 7: the same state and message "abc". */
const TAIL = [
  "48c9bdf267e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5",
  "d182e6ad7f520e511f6c3e2b8c68059b6bbd41fbabd9831f79217e1319cde05b",
  "616263".padEnd(256, "0"),
  "03".padEnd(32, "0"),
  "01",
].join("");

describe("blake2f", () => {
  it("answers EIP-152's vector 5", () => {
    const data = Buffer.from(`0000000c${TAIL}`, "hex");
    expect(data.length).toBe(213);
    const returnValue = blake2f.run(data) ?? new Uint8Array(0);
    expect(blake2f.gas(data)).toBe(12);
    // With 12 rounds and these inputs F is BLAKE2b-512 of "abc", which OpenSSL knows as well.
    expect(hex(returnValue)).toBe(createHash("blake2b512").update("abc").digest("hex"));
  });

  it("agrees with the library on 200 random inputs, wrong ones included", async () => {
    const random = createRandom(SEED);
    const evm = await createEVM();
    const to = createAddressFromString(`0x${"00".repeat(19)}09`);
    for (let round = 0; round < 200; round++) {
      const length = random.integer(20) === 0 ? random.integer(300) : 213;
      const data = random.bytes(length);
      data.set([0, 0, 0, random.integer(40)].slice(0, length));
      if (length === 213) data[212] = random.integer(20) === 0 ? 2 : random.integer(2);
      const { execResult: library } = await evm.runCall({ to, data, gasLimit: 1_000n });
      const ours = blake2f.run(data);
      expect([round, ours === undefined]).toEqual([round, library.exceptionError !== undefined]);
      if (ours === undefined) continue;
      expect([round, hex(ours), BigInt(blake2f.gas(data))]).toEqual([
        round,
        hex(library.returnValue),
        library.executionGasUsed,
      ]);
    }
  });
});

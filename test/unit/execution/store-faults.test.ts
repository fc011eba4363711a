/** A store that cannot be read is no fault of the transaction that wanted to read it. */
import { describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import { StoreError } from "../../../node/store/database.js";
import type { Address } from "../../../chain/address.js";
import { ALICE, CONTRACT, execute, MemoryState, TEN, transaction } from "./call-fixture.js";

/** PUSH0 SLOAD. */
const READS_A_SLOT = "5f54";

/** A state whose slots cannot be read. */
class Unreadable extends MemoryState {
  constructor(private readonly cause: Error) {
    super({ [ALICE]: { balanceAtoken: TEN }, [CONTRACT]: { code: READS_A_SLOT } });
  }

  override storage(_address: Address, _key: Hash32): Uint8Array {
    throw this.cause;
  }
}

describe("execution over a store that cannot be read", () => {
  const faults: readonly (readonly [string, Error])[] = [
    ["damage", new StoreError("STORE_CORRUPT", "a record is damaged")],
    [
      "too many open files",
      Object.assign(new Error("IO error: Too many open files"), { code: "LEVEL_IO_ERROR" }),
    ],
  ];
  it.each(faults)("passes on %s, and says nothing of the transaction", async (_name, cause) => {
    const calls = execute(new Unreadable(cause), [transaction({ gasLimit: 100_000n })]);
    await expect(calls).rejects.toBe(cause);
  });
});

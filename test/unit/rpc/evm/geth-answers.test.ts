/**
 * Calls with overrides and simulations, answered as go-ethereum has answered the very same
 * requests: test/fixtures/execution/geth-answers.json holds what that version said over an empty
 * genesis with Cancun rules. What belongs to its chain alone (base fee, roots, times) is left out.
 */
import { readFileSync } from "node:fs";
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { InProcessCalls, MemoryState, SETTINGS } from "../../execution/call-fixture.js";
import { createTestNode } from "./fixture.js";

interface GethAnswers {
  readonly client: string;
  readonly genesis: Readonly<
    Record<"timestamp" | "gasLimit" | "coinbase" | "chainId" | "hash" | "forkId", string>
  >;
  readonly cases: readonly {
    readonly name: string;
    readonly method: string;
    readonly params: readonly unknown[];
    readonly result?: unknown;
    readonly error?: object;
  }[];
}

const file = new URL("../../../fixtures/execution/geth-answers.json", import.meta.url);
const ZEROS = /^0x00\*(\d+)$/;
const recorded = JSON.parse(readFileSync(file, "utf8"), (_key, value: unknown) => {
  const count = typeof value === "string" ? ZEROS.exec(value)?.[1] : undefined;
  return count === undefined ? value : `0x${"00".repeat(Number(count))}`;
}) as GethAnswers;

const { genesis } = recorded;
const base = {
  height: 0,
  hash: parseHash32(genesis.hash),
  timestampSeconds: Number(genesis.timestamp),
  coinbase: parseAddress(genesis.coinbase),
  gasLimit: BigInt(genesis.gasLimit),
  mixHash: parseHash32(genesis.hash),
};
/** As it was run with. */
const settings = { ...SETTINGS, gasCap: 3_000_000n };
const node = createTestNode({}, new InProcessCalls(new MemoryState({}), base, settings));

it.each(recorded.cases.map((one) => [one.name, one] as const))("%s", async (_name, wanted) => {
  const { result, error } = await node.ask(wanted.method, ...wanted.params);
  if (wanted.error === undefined) {
    expect(error).toBeUndefined();
    if (typeof wanted.result === "string") expect(result).toBe(wanted.result);
    else expect(result).toMatchObject(wanted.result as object);
  } else {
    expect(error).toEqual(wanted.error);
  }
});

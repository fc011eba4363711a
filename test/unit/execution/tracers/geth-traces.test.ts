/**
 * Traces beside go-ethereum's own: test/fixtures/execution/geth-traces.json holds what its tracers
 * said of small programs. Left aside is the `index` of a log, which only later versions have.
 */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { type Hex, hexToBytes } from "../../../../chain/hex.js";
import { parseTraceConfig } from "../../../../node/rpc/evm/arguments/trace.js";
import { type FixtureAccount, MemoryState, traceCall } from "../call-fixture.js";

interface GethAccount {
  readonly balance: Hex;
  readonly nonce?: Hex;
  readonly code?: Hex;
  readonly storage?: Readonly<Record<Hex, Hex>>;
}

interface GethCase {
  readonly name: string;
  readonly alloc: Readonly<Record<Address, GethAccount>>;
  readonly message: {
    readonly from: Address;
    readonly to: Address | null;
    readonly value: Hex;
    readonly data: Hex;
    readonly gas: number;
  };
  readonly traces: readonly {
    readonly tracer: string;
    readonly config: Readonly<Record<string, unknown>>;
    readonly result: unknown;
  }[];
}

interface FlatCase {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly result: unknown;
}

function fixture(name: string): unknown {
  const file = new URL(`../../../fixtures/execution/${name}`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8"));
}

const { cases } = fixture("geth-traces.json") as { cases: readonly GethCase[] };
const { cases: flatCases } = fixture("geth-flat-traces.json") as { cases: readonly FlatCase[] };

function stateOf(alloc: GethCase["alloc"]): MemoryState {
  const entries = Object.entries(alloc).map(([address, account]): [string, FixtureAccount] => {
    const { balance, nonce = "0x0", code = "0x", storage = {} } = account;
    const slots = Object.entries(storage).map(([key, value]) => [Number(key), BigInt(value)]);
    const record = { balanceAtoken: BigInt(balance), nonce: BigInt(nonce), code: code.slice(2) };
    return [address, { ...record, storage: Object.fromEntries(slots) }];
  });
  return new MemoryState(Object.fromEntries(entries));
}

/** As JSON, without what only later versions of go-ethereum say. */
function plain(trace: unknown): unknown {
  const text = JSON.stringify(trace, (key, value) => (key === "index" ? undefined : value));
  return JSON.parse(text);
}

function requestOf({ from, to, value, data, gas }: GethCase["message"]) {
  return {
    from: parseAddress(from),
    to: to === null ? undefined : parseAddress(to),
    valueAtoken: BigInt(value),
    data: hexToBytes(data),
    gasLimit: BigInt(gas),
  };
}

describe("traces", () => {
  it.each(cases)("are go-ethereum's: $name", async ({ name, alloc, message, traces }) => {
    const request = requestOf(message);
    for (const { tracer, config, result } of traces) {
      const options = tracer === "" ? config : { tracer, tracerConfig: config };
      const trace = plain(await traceCall(stateOf(alloc), request, parseTraceConfig(options)));
      expect({ name, tracer, config, trace }).toEqual({ name, tracer, config, trace: result });
      // Also in the order of go-ethereum, which writes its objects sorted or by their fields.
      if (tracer !== "") expect(JSON.stringify(trace)).toBe(JSON.stringify(result));
    }
  });

  it.each(flatCases)(
    "as a list are go-ethereum 1.16.7's: $name",
    async ({ name, config, result }) => {
      const found = cases.find((one) => one.name === name);
      if (found === undefined) throw new Error(`no case ${name}`);
      const kind = parseTraceConfig({ tracer: "flatCallTracer", tracerConfig: config });
      const trace = plain(await traceCall(stateOf(found.alloc), requestOf(found.message), kind));
      expect(trace).toEqual(result);
      expect(JSON.stringify(trace)).toBe(JSON.stringify(result));
    },
  );
});

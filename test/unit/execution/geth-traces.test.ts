/**
 * Traces beside go-ethereum's own: test/fixtures/execution/geth-traces.json holds what its tracers
 * said of small programs. Left aside is the `index` of a log, which only later versions have; they write
 * words of memory and storage in struct logs with 0x, too (since 1.17.3, as execution-apis has it).
 */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type Hex, hexToBytes } from "../../../chain/hex.js";
import { parseTraceConfig } from "../../../node/rpc/evm/arguments/trace.js";
import { type FixtureAccount, MemoryState, traceCall } from "./call-fixture.js";

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
  const file = new URL(`../../fixtures/execution/${name}`, import.meta.url);
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

interface StructLog {
  readonly memory?: readonly string[];
  readonly storage?: Readonly<Record<string, string>>;
}

/** Struct logs as later versions write them. */
function asLater(result: unknown): unknown {
  const { structLogs, ...rest } = result as { readonly structLogs: readonly StructLog[] };
  const later = structLogs.map(({ memory, storage, ...entry }) => ({
    ...entry,
    ...(memory && { memory: memory.map((item) => `0x${item}`) }),
    ...(storage && { storage: Object.fromEntries(Object.entries(storage).map(prefixed)) }),
  }));
  return { ...rest, structLogs: later };
}

function prefixed([key, value]: readonly [string, string]): [string, string] {
  return [`0x${key}`, `0x${value}`];
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
      const wanted = tracer === "" ? asLater(result) : result;
      expect({ name, tracer, config, trace }).toEqual({ name, tracer, config, trace: wanted });
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

/** Verifications of several clients: how many each may have waiting, and whose turn it is. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import type { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { VerifiedStore } from "../../../../explorer/verification/verified-store.js";
import { Verifier } from "../../../../explorer/verification/verifier.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";

const VERSION = "0.8.1+commit.00000001";
const [ONE, OTHER, THIRD] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
const log = createLogger({ component: "explorer", level: "silent" });

let folder: string;
let stopping: AbortController;
/** Lets the verification go on that asks the node. */
let goOn: () => void;
/** Contracts in the order in which the node was asked for their code. */
let asked: Address[];

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "verifier-turns-"));
  fs.writeFileSync(path.join(folder, `soljson-v${VERSION}.js`), "");
  stopping = new AbortController();
  asked = [];
});

afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

/** A verifier whose node answers when it is let; it has no code of any contract. */
function openVerifier(limitsLoopback = false) {
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  const chain = {
    head: async () => {
      await gate;
      return { height: 0 };
    },
    evm: {
      async getCode(address: Address) {
        asked.push(address);
        return "0x";
      },
    },
  } as unknown as ChainSource;
  const verifier = new Verifier({
    chain,
    store: VerifiedStore.open({ folder: path.join(folder, "store"), maxBytes: 1 << 20, log }),
    compilers: folder,
    limits: { timeoutMs: 60_000, memoryBytes: 1 << 26 },
    limitsLoopback,
    clock: systemClock,
    log,
    signal: stopping.signal,
  });
  let byte = 0;
  /** @returns the address that the verification is for */
  const submit = (client: string): Address => {
    byte += 1;
    const address = parseAddress(`0x${Buffer.alloc(20, byte).toString("hex")}`);
    const input = JSON.stringify({ language: "Solidity", sources: { "A.sol": { content: "" } } });
    const sent = { contractName: "A", compilerVersion: VERSION, constructorArguments: "" };
    verifier.submit({ address, input, ...sent }, client);
    return address;
  };
  return { verifier, submit };
}

const busy = expect.objectContaining({ code: "BUSY" });

describe("verifications", () => {
  it("have turns by client, and no client has all places", async () => {
    const { verifier, submit } = openVerifier();
    const own = Array.from({ length: 4 }, () => submit(ONE));
    expect(() => submit(ONE)).toThrow(busy);
    const others = [submit(OTHER), submit(OTHER)];
    expect(() => submit(OTHER)).toThrow(busy);
    const thirds = [submit(THIRD), submit(THIRD)];
    expect(() => submit("10.0.0.4")).toThrow(busy);
    goOn();
    await verifier.stop();
    expect(asked).toEqual([
      own[0],
      own[1],
      others[0],
      thirds[0],
      own[2],
      others[1],
      thirds[1],
      own[3],
    ]);
    // Places are given back.
    for (const _ of own) submit(ONE);
    await verifier.stop();
    expect(asked).toHaveLength(12);
  });

  it("of this machine, which may speak for many, have all places unless it is limited, too", async () => {
    for (const [limitsLoopback, places] of [
      [false, 8],
      [true, 4],
    ] as const) {
      const { verifier, submit } = openVerifier(limitsLoopback);
      for (let place = 0; place < places; place += 1) submit("127.0.0.1");
      expect(() => submit("127.0.0.1")).toThrow(busy);
      goOn();
      await verifier.stop();
    }
  });

  it("that wait when the process ends are refused as stopped", async () => {
    const { verifier } = openVerifier();
    const sent = { contractName: "A", compilerVersion: VERSION, constructorArguments: "" };
    const address = parseAddress(`0x${"0c".repeat(20)}`);
    const request = { address, input: "{}", ...sent };
    verifier.submit(request, ONE);
    const { id } = verifier.submit(request, ONE);
    stopping.abort();
    goOn();
    await verifier.stop();
    expect(verifier.job(id)?.outcome).toMatchObject({ kind: "refused", code: "STOPPED" });
  });
});

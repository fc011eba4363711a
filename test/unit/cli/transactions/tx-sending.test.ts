import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { encodeMessage } from "../../../../chain/protobuf/codec.js";
import { isConfirmed } from "../../../../cli/transactions/question.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

const home = mkdtempSync(join(tmpdir(), "causeway-tx-fee-"));
const key = join(home, "some.key");
writeFileSync(key, `0x${"11".repeat(32)}\n`, { mode: 0o600 });

/** What the node says of its price and of the gas. */
let says: { price: string; gas: bigint };
let sent: string[];
/** What the node says of a transaction that is not to be sent yet. */
let checked: { code: number; log: string };
/** What happens when the transaction has come. */
let onSent: () => void;
let server: Server;

/** Answers of a node's consensus RPC, as far as a transfer asks for them. */
function answer(method: string, params: Readonly<Record<string, string>>): unknown {
  if (method === "status") return { node_info: { network: "chain_6940-1" } };
  if (method === "check_tx") return checked;
  if (method === "broadcast_tx_sync") {
    sent.push(params["tx"] ?? "");
    onSent();
    return { code: 0, codespace: "", log: "", data: "", hash: "A".repeat(64) };
  }
  const answers: Readonly<Record<string, readonly [string, ProtoMessage]>> = {
    "/cosmos.auth.v1beta1.Query/AccountInfo": [
      "cosmos.auth.v1beta1.QueryAccountInfoResponse",
      { info: { sequence: 0n } },
    ],
    "/cosmos.tx.v1beta1.Service/Simulate": [
      "cosmos.tx.v1beta1.SimulateResponse",
      { gas_info: { gas_used: says.gas } },
    ],
    "/cosmos.base.node.v1beta1.Service/Config": [
      "cosmos.base.node.v1beta1.ConfigResponse",
      { minimum_gas_price: says.price },
    ],
  };
  const [name, message] = answers[params["path"] ?? ""] ?? ["", {}];
  const value = encodeMessage(loadDescriptors().message(name), message).toString("base64");
  return { response: { code: 0, log: "", value } };
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, params } = JSON.parse(Buffer.concat(chunks).toString());
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: answer(method, params) }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
});

beforeEach(() => {
  says = { price: "0.025atoken", gas: 76_000n };
  sent = [];
  checked = { code: 0, log: "" };
  onSent = () => undefined;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(home, { recursive: true });
});

/** A transfer of one atoken that nobody is asked about. */
function send(...flags: readonly string[]) {
  return sendUntil(new AbortController().signal, flags);
}

function sendUntil(signal: AbortSignal, flags: readonly string[]) {
  const node = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ["tx", "bank", "send", `0x${"22".repeat(20)}`, "1atoken", "--from", key, "--yes"];
  return runCommand(home, [...words, "--node", node, ...flags], signal);
}

/** Hash of what was sent, as the SDK writes it. */
function sentHash(): string {
  const [tx = ""] = sent;
  return createHash("sha256").update(Buffer.from(tx, "base64")).digest("hex").toUpperCase();
}

describe("a fee that a node has named", () => {
  it("is paid where it is what fees are", async () => {
    expect(await send()).toMatchObject({ code: 0 });
    expect(sent).toHaveLength(1);
  });

  it("is not signed above a TOKEN: a wrong node may name any price and any gas", async () => {
    says = { price: "1000000000000000000atoken", gas: 76_000n };
    const dear = await send();
    expect(dear).toMatchObject({ code: 1, out: "" });
    expect(dear.err).toContain("91200 TOKEN");
    expect(dear.err).toContain("--fees");
    says = { price: "0.025atoken", gas: 2n ** 62n };
    expect(await send("--gas-prices", "25000000atoken")).toMatchObject({ code: 1, out: "" });
    expect(sent).toEqual([]);
  });

  it("is paid where a person names it", async () => {
    says = { price: "1000000000000000000atoken", gas: 76_000n };
    expect(await send("--fees", "2000000000000000000atoken")).toMatchObject({ code: 0 });
    const both = ["--gas", "100000", "--gas-prices", "20000000000000atoken"];
    expect(await send(...both)).toMatchObject({ code: 0 });
    expect(sent).toHaveLength(2);
  });
});

describe("a second transaction within a block", () => {
  const fees = ["--fees", "2000000000000000atoken"];

  beforeEach(() => {
    const log = "account sequence mismatch, expected 1, got 0: incorrect account sequence";
    checked = { code: 32, log };
  });

  it("does not take the place of the first one unless its sequence is named", async () => {
    const second = await send(...fees);
    expect(second).toMatchObject({ code: 1, out: "" });
    expect(second.err).toContain("--sequence 1");
    expect(sent).toEqual([]);
    expect(await send(...fees, "--sequence", "0")).toMatchObject({ code: 0 });
    expect(sent).toHaveLength(1);
  });

  it("is left to the pool where the node says something else of it", async () => {
    checked = { code: 5, log: "spendable balance 0atoken is smaller than 1atoken" };
    expect(await send(...fees)).toMatchObject({ code: 0 });
    expect(sent).toHaveLength(1);
  });
});

describe("a person who is asked", () => {
  const typed = (text: string) => {
    const input = new PassThrough();
    input.end(text);
    const { signal } = new AbortController();
    return isConfirmed("send it? ", { input, output: new PassThrough() }, signal);
  };

  it.each([
    ["y\n", true],
    ["Yes\n", true],
    ["n\n", false],
    ["\n", false],
    ["yes, later\n", false],
  ])("may type %j", async (text, isYes) => {
    expect(await typed(text)).toBe(isYes);
  });

  it("has said no where the input ends, as Ctrl-D ends it", async () => {
    const waiting = new AbortController();
    const answered = typed("").finally(() => waiting.abort());
    const late = sleep(2_000, "nothing", { signal: waiting.signal }).catch(() => "nothing");
    expect(await Promise.race([answered, late])).toBe(false);
  });
});

describe("what was sent already", () => {
  it.each([
    ["--output", "yaml"],
    ["-o", "JSON"],
    ["--broadcast-mode", "commit"],
  ])(
    "is never followed by a refusal of %s %s: whoever mends the flag would pay twice",
    async (flag, value) => {
      const refused = await send(flag, value);
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toContain(`not "${value}"`);
      expect(sent).toEqual([]);
    },
  );

  it.each(["sync", "block"])(
    "is named by its hash where the command is stopped, mode %s",
    async (mode) => {
      const stopping = new AbortController();
      onSent = () => stopping.abort(new DOMException("the command was stopped", "AbortError"));
      const stopped = await sendUntil(stopping.signal, ["--broadcast-mode", mode]);
      expect(sent).toHaveLength(1);
      expect(stopped).toMatchObject({ code: 1, out: "" });
      expect(stopped.err).toContain(`causeway query tx ${sentHash()}`);
    },
  );

  it("is named by its hash where the node stops to answer before a block has it", async () => {
    onSent = () => server.closeAllConnections();
    const lost = await send("--broadcast-mode", "block");
    expect(lost).toMatchObject({ code: 1, out: "" });
    expect(lost.err).toContain(`causeway query tx ${sentHash()}`);
  });
});

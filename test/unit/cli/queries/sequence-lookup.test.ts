/** What `causeway query tx --type=acc_seq` says of a sequence that no transaction with events has taken. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { encodeMessage } from "../../../../chain/protobuf/codec.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

const account = toBech32(parseAddress(`0x${"ab".repeat(20)}`));
/** Keccak-256 of no bytes (EIP-1052). */
const NO_CODE = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
const NONE = "found no txs matching given address and sequence combination";

let server: Server;
/** The account's next sequence; undefined where the node knows no such account. */
let next: bigint | undefined;
/** Of the code that the account has. */
let codeHash: string;
/** Hashes that a search finds, and whether it may be asked as of a height. */
let find: (height: number) => readonly string[] | "in the future";
/** Queries in their order, each with the height that it was asked for. */
let asked: string[];

/** Answers of a node's consensus RPC at height 9. */
function answer(method: string, params: Readonly<Record<string, string>>): unknown {
  if (method === "status") return { sync_info: { latest_block_height: "9" } };
  const { path = "", height = "" } = params;
  asked.push(`${path.split("/").at(-1)} ${height}`);
  const value = (name: string, message: ProtoMessage) => ({
    code: 0,
    log: "",
    value: encodeMessage(loadDescriptors().message(name), message).toString("base64"),
  });
  if (path.endsWith("/AccountInfo")) {
    const response =
      next === undefined
        ? { code: 22, log: "rpc error: code = NotFound desc = no account", value: null }
        : value("cosmos.auth.v1beta1.QueryAccountInfoResponse", { info: { sequence: next } });
    return { response };
  }
  if (path.endsWith("/Account")) {
    const known = { balance: "0", code_hash: codeHash, nonce: next ?? 0n };
    return { response: value("cosmos.evm.vm.v1.QueryAccountResponse", known) };
  }
  const found = find(Number(height));
  if (found === "in the future") {
    return { response: { code: 26, log: "a height in the future", value: null } };
  }
  const tx_responses = found.map((txhash) => ({ txhash }));
  return { response: value("cosmos.tx.v1beta1.GetTxsEventResponse", { tx_responses }) };
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
  [next, find, asked] = [8n, () => [], []];
  codeHash = NO_CODE;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function lookUp(...flags: readonly string[]) {
  const node = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = ["query", "tx", "--type=acc_seq", `${account}/7`, "--node", node, ...flags];
  return runCommand(tmpdir(), words);
}

it("that it is taken for good, where the account's next one is above it", async () => {
  const { code, err, out } = await lookUp();
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(`${NONE}: an Ethereum transaction took sequence 7`);
  expect(err).toContain("no Cosmos transaction of it was mined, and none will be");
  // Of one height, and the search again: until it is made a block may have taken the sequence.
  expect(asked).toEqual(["GetTxsEvent 0", "Account 9", "AccountInfo 9", "GetTxsEvent 9"]);
});

it.each([[7n], [3n], [undefined]])(
  "that it may be taken still, where the account's next one is %s",
  async (sequence) => {
    next = sequence;
    const { code, err, out } = await lookUp();
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(`${NONE}: at height 9 the account's next one was ${sequence ?? 0}`);
    expect(err).toContain("may still be mined");
    expect(err).not.toContain("Ethereum");
  },
);

it.each([[8n], [7n]])(
  "that a contract takes none by a transaction, where its next one is %s",
  async (sequence) => {
    [next, codeHash] = [sequence, `0x${"c0".repeat(32)}`];
    const { code, err, out } = await lookUp();
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(
      `${NONE}: at height 9 ${account} is a contract, and contracts sign no transactions; its ` +
        "sequence counts the contracts that it has made, from 1",
    );
    expect(err).not.toContain("Ethereum");
    expect(err).not.toContain("may still be mined");
  },
);

it("what took it meanwhile", async () => {
  find = (height) => (height === 0 ? [] : ["AB".repeat(32)]);
  expect(await lookUp()).toMatchObject({
    code: 0,
    err: "",
    out: expect.stringContaining("AB".repeat(32)),
  });
});

it("nothing of the kind, where another node answers that is behind", async () => {
  find = (height) => (height === 0 ? [] : "in the future");
  const { code, err } = await lookUp();
  expect([code, err]).toEqual([1, expect.stringContaining("a height in the future")]);
  expect(err).not.toContain("Ethereum");
});

it("as of the height that is asked for", async () => {
  await lookUp("--height", "5");
  expect(asked).toEqual(["GetTxsEvent 5", "Account 5", "AccountInfo 5", "GetTxsEvent 5"]);
});

/** eth_getLogs and polled filters: matching, bounds that never cut silently, no lost event. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../../chain/address.js";
import { type Hash32, parseHash32, ZERO_HASH } from "../../../../../chain/hex.js";
import type { Log } from "../../../../../chain/receipt.js";
import { RequestContext } from "../../../../../node/rpc/evm/request-context.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../fixture.js";

const word = (digit: string) => parseHash32(`0x${digit.repeat(64)}`);
const token = parseAddress(`0x${"aa".repeat(20)}`);
const other = parseAddress(`0x${"bb".repeat(20)}`);
const log = (address: Address, ...topics: Hash32[]): Log => ({
  address,
  topics,
  data: new Uint8Array(0),
});
type LogJson = { address: string; topics: string[]; blockNumber: string; logIndex: string };

async function chainWithLogs(limits = {}) {
  const node = createTestNode(limits);
  const raws = await Promise.all(
    [0, 1, 2].map((nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
  );
  const add = (index: number, logs: readonly Log[]) =>
    node.chain.add([{ raw: raws[index] ?? "", logs }]);
  add(0, [log(token, word("1"), word("2")), log(other, word("1"))]);
  node.chain.add([]);
  add(1, [log(token, word("3"))]);
  return { node, addLast: (logs: readonly Log[]) => add(2, logs) };
}

describe("eth_getLogs", () => {
  let node: Awaited<ReturnType<typeof chainWithLogs>>["node"];
  beforeAll(async () => {
    ({ node } = await chainWithLogs({ logBlocks: 3 }));
  });
  const places = async (filter: object) =>
    (await node.call<LogJson[]>("eth_getLogs", filter)).map(
      (found) => `${found.blockNumber}/${found.logIndex}`,
    );

  it("filters by address, topics, wildcards and alternatives", async () => {
    const range = { fromBlock: "0x1", toBlock: "latest" };
    const cases: [object, string[]][] = [
      [{}, ["0x1/0x0", "0x1/0x1", "0x3/0x0"]],
      [{ address: token }, ["0x1/0x0", "0x3/0x0"]],
      [{ address: [token, other] }, ["0x1/0x0", "0x1/0x1", "0x3/0x0"]],
      [{ address: [] }, ["0x1/0x0", "0x1/0x1", "0x3/0x0"]],
      [{ topics: [word("1")] }, ["0x1/0x0", "0x1/0x1"]],
      [{ topics: [null, word("2")] }, ["0x1/0x0"]],
      [{ topics: [[word("3"), word("1")], null] }, ["0x1/0x0"]],
      [{ topics: [[word("3"), word("1")]] }, ["0x1/0x0", "0x1/0x1", "0x3/0x0"]],
      [{ topics: [[], []] }, ["0x1/0x0"]],
      [{ topics: [word("9")] }, []],
      [{ address: other, topics: [word("3")] }, []],
    ];
    for (const [filter, found] of cases) {
      expect([filter, await places({ ...range, ...filter })]).toEqual([filter, found]);
    }
  });

  it("takes as many addresses as indexers send, and no more", async () => {
    const most = Array.from(
      { length: 2_000 },
      (_, index) => `0x${index.toString(16).padStart(40, "0")}`,
    );
    const range = { fromBlock: "0x1", toBlock: "latest" };
    expect(await places({ ...range, address: [...most.slice(1), other] })).toEqual(["0x1/0x1"]);
    const many = { ...range, address: [...most, other] };
    expect((await node.ask("eth_getLogs", many)).error).toEqual({
      code: -32602,
      message: "invalid argument 0: exceed max addresses",
    });
  });

  it("takes a block hash, and the head where no range is given", async () => {
    expect(await places({ blockHash: node.chain.block(1)?.block.hash })).toEqual([
      "0x1/0x0",
      "0x1/0x1",
    ]);
    expect(await places({})).toEqual(["0x3/0x0"]);
    expect(await places({ fromBlock: null, toBlock: null })).toEqual(["0x3/0x0"]);
  });

  it("refuses ranges with go-ethereum's texts", async () => {
    const hash = node.chain.block(1)?.block.hash;
    const cases: [object, number, string][] = [
      [{ fromBlock: "0x2", toBlock: "0x1" }, -32602, "invalid block range params"],
      [{ fromBlock: "0x0", toBlock: "0x3" }, -32602, "exceed maximum block range: 3"],
      [
        { fromBlock: "0x1", toBlock: "0x9" },
        -32602,
        "block range extends beyond current head block",
      ],
      // What clients wait on whose node is behind: no block is named that could not come.
      [{ fromBlock: "0x9" }, -32602, "block range extends beyond current head block"],
      [
        { fromBlock: "0x9", toBlock: "latest" },
        -32602,
        "block range extends beyond current head block",
      ],
      [{ fromBlock: "0x9", toBlock: "0x2" }, -32602, "invalid block range params"],
      [
        { blockHash: hash, fromBlock: "0x1" },
        -32602,
        "can't specify fromBlock/toBlock with blockHash",
      ],
      [{ fromBlock: "pending" }, -32602, "pending logs are not supported"],
      [
        { topics: [null, null, null, null, null] },
        -32602,
        "invalid argument 0: topics: exceed max topics",
      ],
      [
        { address: "0x12" },
        -32602,
        "invalid argument 0: hex string has length 2, want 40 for an address",
      ],
      [{ blockHash: ZERO_HASH }, -32000, "unknown block"],
    ];
    for (const [filter, code, message] of cases) {
      expect((await node.ask("eth_getLogs", filter)).error).toEqual({ code, message });
    }
  });

  it("answers a repeated query from bytes, and a moved head or another filter anew", async () => {
    const { node: own, addLast } = await chainWithLogs();
    const open = { fromBlock: "0x1", toBlock: "latest", address: [token, other] };
    const first = await own.call<LogJson[]>("eth_getLogs", open);
    const turned = { ...open, address: [other, token] };
    expect(await own.call("eth_getLogs", turned)).toEqual(first);
    expect(await own.call<LogJson[]>("eth_getLogs", { ...open, address: other })).toHaveLength(1);
    expect(await own.call<LogJson[]>("eth_getLogs", { ...open, topics: [word("1")] })).toHaveLength(
      2,
    );
    addLast([log(token)]);
    expect(await own.call<LogJson[]>("eth_getLogs", open)).toHaveLength(first.length + 1);
  });

  it("refuses too many results or bytes instead of cutting them", async () => {
    const few = await chainWithLogs({ logResults: 2 });
    const range = { fromBlock: "0x0", toBlock: "latest" };
    expect((await few.node.ask("eth_getLogs", range)).error).toEqual({
      code: -32602,
      message: "query returned more than 2 results: block range too large",
    });
    const one = await chainWithLogs({ logResults: 1 });
    const single = { blockHash: one.node.chain.block(1)?.block.hash };
    expect((await one.node.ask("eth_getLogs", single)).error?.code).toBe(-32602);
    // The first log alone has more bytes; that there are too many is said all the same.
    const both = await chainWithLogs({ logResults: 1, responseBytes: 100 });
    expect((await both.node.ask("eth_getLogs", single)).error?.message).toBe(
      "query returned more than 1 results",
    );
    const small = await chainWithLogs({ responseBytes: 700 });
    expect((await small.node.ask("eth_getLogs", range)).error).toEqual({
      code: -32003,
      message: "response too large: block range too large",
    });
    const hash = { blockHash: small.node.chain.block(1)?.block.hash };
    expect((await small.node.ask("eth_getLogs", hash)).error?.message).toBe("response too large");
  });

  it.each([{ logResults: 2 }, { responseBytes: 1_100 }])(
    "tells indexers in their words that fewer blocks are answered: %j",
    async (limits) => {
      const { node: own, addLast } = await chainWithLogs(limits);
      addLast([log(token, word("5"))]);
      const found: LogJson[] = [];
      const asked: string[] = [];
      for (let from = 1, to = 4; from <= 4; ) {
        const range = { fromBlock: `0x${from}`, toBlock: `0x${to}` };
        const { result, error } = await own.ask("eth_getLogs", range);
        asked.push(`${from}-${to} ${error?.code ?? "given"}`);
        if (error === undefined) {
          found.push(...(result as LogJson[]));
          [from, to] = [to + 1, 4];
        } else {
          // graph-node, log_stream; Ponder's getLogsRetryHelper takes half of the range at these words.
          expect(error.message).toContain("block range too large");
          to = from + Math.floor((to - from) / 2);
        }
      }
      const code = "logResults" in limits ? -32602 : -32003;
      expect(asked).toEqual([`1-4 ${code}`, "1-2 given", "3-4 given"]);
      expect(found.map(({ blockNumber }) => blockNumber)).toEqual(["0x1", "0x1", "0x3", "0x4"]);
    },
  );
});

describe("filters", () => {
  it("reports each log once, also when many blocks lie between two polls", async () => {
    const { node, addLast } = await chainWithLogs();
    const id = await node.call("eth_newFilter", { address: token });
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
    node.chain.add([]);
    addLast([log(token, word("5")), log(other, word("5"))]);
    const found = await node.call<LogJson[]>("eth_getFilterChanges", id);
    expect(found.map((entry) => entry.topics)).toEqual([[word("5")]]);
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
    expect(await node.call<LogJson[]>("eth_getFilterLogs", id)).toHaveLength(1);
  });

  it("spreads what is over the bound over several polls and loses nothing", async () => {
    const { node, addLast } = await chainWithLogs({ logResults: 2 });
    const id = await node.call("eth_newFilter", {});
    addLast([1, 2, 3].map(() => log(token, word("7"))));
    node.chain.add([]);
    const raws = await Promise.all(
      [3, 4].map((nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
    );
    for (const raw of raws) node.chain.add([{ raw, logs: [log(token, word("8"))] }]);
    const polls: number[] = [];
    for (let poll = 0; poll < 4; poll++) {
      polls.push((await node.call<LogJson[]>("eth_getFilterChanges", id)).length);
    }
    expect(polls.reduce((sum, count) => sum + count)).toBe(5);
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
  });

  it("gives each log once where two polls of one filter overlap", async () => {
    const { node, addLast } = await chainWithLogs();
    const id = await node.call("eth_newFilter", {});
    addLast([log(token, word("5")), log(token, word("6"))]);
    const poll = () => node.call<LogJson[]>("eth_getFilterChanges", id);
    const polls = await Promise.all([poll(), poll(), poll()]);
    expect(polls.flat().map(({ topics }) => topics)).toEqual([[word("5")], [word("6")]]);
    expect(await poll()).toEqual([]);
  });

  it("gives each pending transaction once where two polls of one filter overlap", async () => {
    const { node } = await chainWithLogs({ responseBytes: 1_500 });
    const mined = [1, 3].flatMap((height) => node.chain.block(height)?.block.transactions ?? []);
    const id = await node.call("eth_newPendingTransactionFilter", true);
    node.bus.emit("pendingTransactions", mined);
    const poll = () => node.call<{ hash: string }[]>("eth_getFilterChanges", id);
    const early = poll();
    node.bus.emit("pendingTransactions", mined.slice(0, 1));
    const polls = [...(await Promise.all([early, poll()])), await poll(), await poll()];
    const told = [...mined, ...mined.slice(0, 1)].map(({ tx }) => tx.hash);
    expect(polls.flatMap((list) => list.map(({ hash }) => hash)).toSorted()).toEqual(
      told.toSorted(),
    );
  });

  it("gives what a poll that was ended had found to the next one", async () => {
    const { node, addLast } = await chainWithLogs();
    const logs = await node.call("eth_newFilter", {});
    const pending = await node.call("eth_newPendingTransactionFilter", true);
    addLast([log(token, word("5"))]);
    node.bus.emit("pendingTransactions", node.chain.block(1)?.block.transactions ?? []);
    for (const id of [logs, pending]) {
      const gone = new RequestContext(5_000, undefined);
      gone.cancel();
      const body = { jsonrpc: "2.0", id: 1, method: "eth_getFilterChanges", params: [id] };
      const reply = await node.api.dispatcher.handle(Buffer.from(JSON.stringify(body)), gone);
      gone.finish();
      expect(String(reply)).toContain("request timed out");
      expect(await node.call("eth_getFilterChanges", id)).toHaveLength(1);
    }
  });

  it("gives a block that is over an answer's bound in several portions, and loses nothing", async () => {
    const { node, addLast } = await chainWithLogs({ responseBytes: 1_000 });
    const id = await node.call("eth_newFilter", {});
    addLast(Array.from({ length: 7 }, () => log(token, word("7"))));
    const [raw, next] = [
      await signLegacy(ALICE, { nonce: 3 }),
      await signLegacy(ALICE, { nonce: 4 }),
    ];
    node.chain.add([{ raw, logs: [log(token, word("8"))] }]);
    const places: string[] = [];
    for (;;) {
      const found = await node.call<LogJson[]>("eth_getFilterChanges", id);
      if (found.length === 0) break;
      places.push(...found.map(({ blockNumber, logIndex }) => `${blockNumber}/${logIndex}`));
    }
    const first = Array.from({ length: 7 }, (_, index) => `0x4/0x${index}`);
    expect(places).toEqual([...first, "0x5/0x0"]);
    node.chain.add([{ raw: next, logs: [log(token)] }]);
    expect(await node.call("eth_getFilterChanges", id)).toHaveLength(1);
  });

  it("refuses a log that alone is over the bound, each time, and says what to do", async () => {
    const { node, addLast } = await chainWithLogs({ responseBytes: 1_000 });
    const id = await node.call("eth_newFilter", {});
    addLast([log(token), { ...log(token), data: new Uint8Array(600) }]);
    expect(await node.call("eth_getFilterChanges", id)).toHaveLength(1);
    for (const attempt of [1, 2]) {
      expect([attempt, (await node.ask("eth_getFilterChanges", id)).error]).toEqual([
        attempt,
        {
          code: -32003,
          message:
            "response too large: one log of block 4 is over the bound, install a narrower filter",
        },
      ]);
    }
  });

  it("keeps for the next poll what a batch has no room for, of every kind of filter", async () => {
    const { node, addLast } = await chainWithLogs({ batchResponseBytes: 300 });
    const ids = [
      await node.call("eth_newFilter", {}),
      await node.call("eth_newBlockFilter"),
      await node.call("eth_newPendingTransactionFilter"),
    ];
    addLast([log(token, word("5"))]);
    node.bus.emit("pendingTransactions", node.chain.block(1)?.block.transactions ?? []);
    const asked = (id: unknown, method: string, params: unknown[]) => ({
      jsonrpc: "2.0",
      id,
      method,
      params,
    });
    const answers = (await node.post([
      asked(0, "eth_getBlockByNumber", ["0x1", false]),
      ...ids.map((id) => asked(id, "eth_getFilterChanges", [id])),
    ])) as { error?: { code: number } }[];
    expect(answers.map(({ error }) => error?.code)).toEqual([undefined, -32003, -32003, -32003]);
    for (const id of ids) expect(await node.call("eth_getFilterChanges", id)).toHaveLength(1);
  });

  it("says where blocks were pruned before they were polled, and skips none of them", async () => {
    const { node, addLast } = await chainWithLogs();
    const ids = [await node.call("eth_newFilter", {}), await node.call("eth_newBlockFilter")];
    addLast([log(token, word("5"))]);
    const { oldest } = node.chain;
    node.chain.oldest = () => ({ ...oldest(), block: 1_000 });
    for (const id of ids) {
      expect((await node.ask("eth_getFilterChanges", id)).error).toEqual({
        code: 4444,
        message: "pruned history unavailable",
      });
    }
    node.chain.oldest = oldest;
    for (const id of ids) expect(await node.call("eth_getFilterChanges", id)).toHaveLength(1);
  });

  it("reports new blocks in order", async () => {
    const { node } = await chainWithLogs();
    const id = await node.call("eth_newBlockFilter");
    const hashes = [node.chain.add([]), node.chain.add([])].map(({ block }) => block.hash);
    expect(await node.call("eth_getFilterChanges", id)).toEqual(hashes);
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
  });

  it("reports pending hashes after the filter was made", async () => {
    const { node } = await chainWithLogs();
    const [first, second] = [1, 3].map((height) => node.chain.block(height)?.block.transactions[0]);
    if (first === undefined || second === undefined) throw new Error("no transactions");
    node.bus.emit("pendingTransactions", [first]);
    const id = await node.call("eth_newPendingTransactionFilter");
    node.bus.emit("pendingTransactions", [second]);
    expect(await node.call("eth_getFilterChanges", id)).toEqual([second.tx.hash]);
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
  });

  it("gives whole transactions where a filter of pending ones asks for them, as geth 1.16.7", async () => {
    // Half of an answer is for them: one fits at a time.
    const { node } = await chainWithLogs({ responseBytes: 1_500 });
    const [first, second] = [1, 3].map((height) => node.chain.block(height)?.block.transactions[0]);
    if (first === undefined || second === undefined) throw new Error("no transactions");
    const id = await node.call("eth_newPendingTransactionFilter", true);
    node.bus.emit("pendingTransactions", [first, second]);
    for (const { tx } of [first, second]) {
      expect(await node.call("eth_getFilterChanges", id)).toMatchObject([
        {
          hash: tx.hash,
          blockHash: null,
          transactionIndex: null,
          nonce: `0x${tx.nonce.toString(16)}`,
        },
      ]);
    }
    expect(await node.call("eth_getFilterChanges", id)).toEqual([]);
    expect((await node.ask("eth_newPendingTransactionFilter", "0x1")).error?.code).toBe(-32602);
  });

  it("forgets filters that idle or are uninstalled, and bounds their number", async () => {
    const { node } = await chainWithLogs({ filters: 2, filterIdleMs: 1_000 });
    const notFound = { code: -32000, message: "filter not found" };
    const id = await node.call("eth_newBlockFilter");
    const kept = await node.call("eth_newBlockFilter");
    expect((await node.ask("eth_newBlockFilter")).error?.code).toBe(-32005);
    node.time.nowMs += 600;
    await node.call("eth_getFilterChanges", kept);
    node.time.nowMs += 600;
    expect((await node.ask("eth_getFilterChanges", id)).error).toEqual(notFound);
    expect(await node.call("eth_getFilterChanges", kept)).toEqual([]);
    expect(await node.call("eth_uninstallFilter", kept)).toBe(true);
    expect(await node.call("eth_uninstallFilter", kept)).toBe(false);
    expect((await node.ask("eth_getFilterLogs", kept)).error).toEqual(notFound);
    expect((await node.ask("eth_getFilterChanges", "constructor")).error).toEqual(notFound);
  });
});

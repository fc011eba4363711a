import { describe, expect, it } from "@jest/globals";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Address } from "../../../../chain/address.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { hexToBytes, type Hash32 } from "../../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import { createExchangeClient } from "../../../../cli/probe/exchange-client.js";
import { until } from "../../../helpers/until.js";
import { createStatusLine, formatStatusLine } from "../../../../cli/supervisor/status-line.js";
import {
  type KitStatus,
  parseMetricsPage,
  readKitStatus,
} from "../../../../cli/probe/kit-status.js";
import { waitFor } from "../../../../cli/probe/waiting.js";
import {
  describeBalances,
  runWalkthrough,
  verifyWalkthrough,
  type WalkthroughOptions,
} from "../../../../cli/supervisor/walkthrough.js";
import type { EvmClient, NodeBlockHeader } from "../../../../rpc-client/evm-client.js";
import { systemClock } from "../../../../runtime/process/clock.js";

const FAUCET_KEY = new Uint8Array(32).fill(3);
const DEPOSIT_ADDRESS = privateKeyToAddress(new Uint8Array(32).fill(9));
const API_KEY = "the-api-key";
const hashOf = (digit: string): Hash32 => `0x${digit.repeat(64)}` as Hash32;
const WITHDRAWAL_HASH = hashOf("b");

/** What a test changes in an otherwise healthy world. */
interface World {
  readonly depositStatuses: readonly string[];
  readonly withdrawalStatuses: readonly string[];
  readonly paidAtoken: bigint;
  readonly availableUnits: string;
  readonly feeUnits: string;
}

const HEALTHY: World = {
  depositStatuses: ["detected", "credited"],
  withdrawalStatuses: ["accepted", "slotted", "broadcast", "settled"],
  paidAtoken: 250_000_000_000_000_000n,
  availableUnits: "750000000000000000",
  feeUnits: "0",
};

interface FakeKit {
  readonly url: string;
  readonly evm: EvmClient;
  readonly sent: Uint8Array[];
  readonly requests: { method: string; path: string; headers: unknown; body: string }[];
  close(): Promise<void>;
}

/** Both APIs and a node, as the contract describes them, over a fixed story. */
async function startFakeKit(world: World): Promise<FakeKit> {
  const requests: FakeKit["requests"] = [];
  const sent: Uint8Array[] = [];
  let depositHash = hashOf("0");
  let destination = "0x" as Address;
  let looks = 0;
  let polls = 0;
  const answer = (method: string, path: string, body: string): [number, unknown] => {
    if (path === "/v1/addresses") {
      return [201, { address: DEPOSIT_ADDRESS, bech32: "addr1x", customerId: "demo", index: 0 }];
    }
    if (path.startsWith("/v1/deposits")) {
      const status = world.depositStatuses[Math.min(looks++, world.depositStatuses.length - 1)];
      const row = {
        id: "7",
        address: DEPOSIT_ADDRESS,
        asset: "TOKEN",
        amountUnits: "1000000000000000000",
        status,
        blockNumber: 5,
        blockHash: hashOf("5"),
        txHash: depositHash,
        confirmations: status === "detected" ? 1 : 2,
      };
      return [200, { deposits: [row], next: null }];
    }
    if (path === "/v1/withdrawals" && method === "POST") destination = JSON.parse(body).to;
    if (path.startsWith("/v1/withdrawals")) {
      const status =
        world.withdrawalStatuses[Math.min(polls++, world.withdrawalStatuses.length - 1)];
      const isMined = status === "settled";
      const row = {
        id: "w1",
        status,
        amountUnits: "250000000000000000",
        feeUnits: world.feeUnits,
        nonce: status === "accepted" ? null : 0,
        txHash: isMined ? WITHDRAWAL_HASH : null,
        blockNumber: isMined ? 8 : null,
      };
      return [method === "POST" ? 201 : 200, row];
    }
    if (looks === 0) return [404, { code: "NOT_FOUND", message: "no such customer", details: {} }];
    const token = {
      asset: "TOKEN",
      availableUnits: world.availableUnits,
      heldUnits: "0",
      pendingUnits: "0",
    };
    return [200, { customerId: "demo", balances: [token] }];
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const [method, path] = [request.method ?? "", request.url ?? ""];
      const body = Buffer.concat(chunks).toString();
      requests.push({ method, path, headers: request.headers, body });
      const [status, value] = answer(method, path, body);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const header = (height: number): NodeBlockHeader => ({
    height,
    hash: hashOf(String(height)),
    parentHash: hashOf(String(height - 1)),
    timestampSeconds: 0,
  });
  const evm = {
    chainId: async () => 6940n,
    getTransactionCount: async () => 4n,
    gasPrice: async () => 25_000_000n,
    estimateGas: async () => 21_000n,
    sendRawTransactions: async (raws: readonly string[]) => {
      const raw = hexToBytes(raws[0] ?? "0x");
      sent.push(raw);
      depositHash = decodeTransaction(raw).hash;
      return [{ outcome: "accepted", hash: depositHash }];
    },
    getTransactionReceipt: async (hash: Hash32) => {
      const isDeposit = hash === depositHash;
      const height = isDeposit ? 5 : 8;
      const to = isDeposit ? DEPOSIT_ADDRESS : destination;
      return { transactionHash: hash, height, blockHash: hashOf(String(height)), to, status: 1 };
    },
    getBlockHeader: async (height: number) => header(height),
    getBalance: async (address: Address) =>
      address === DEPOSIT_ADDRESS ? 10n ** 18n : world.paidAtoken,
  } as unknown as EvmClient;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    evm,
    sent,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function withFakeKit(
  world: Partial<World>,
  work: (options: WalkthroughOptions, kit: FakeKit, lines: string[]) => Promise<void>,
): Promise<void> {
  const kit = await startFakeKit({ ...HEALTHY, ...world });
  const lines: string[] = [];
  try {
    await work(
      {
        evm: kit.evm,
        exchange: createExchangeClient({
          depositUrl: kit.url,
          withdrawalUrl: kit.url,
          apiKey: API_KEY,
        }),
        faucetKey: FAUCET_KEY,
        print: (line) => lines.push(line),
        clock: systemClock,
        signal: new AbortController().signal,
        stepTimeoutMs: 240_000,
      },
      kit,
      lines,
    );
  } finally {
    await kit.close();
  }
}

describe("the walk-through", () => {
  it("tells each step in order and verifies all of it", async () => {
    await withFakeKit({}, async (options, kit, lines) => {
      const result = await runWalkthrough(options);
      const balances = await verifyWalkthrough(result, options);
      lines.push(...describeBalances(result.customerId, balances));
      expect(lines.map((line) => line.trim().split(/\s+/)[0])).toEqual([
        "address",
        "deposit",
        "detected",
        "confirmed",
        "confirmed",
        "credited",
        "withdrawal",
        "slot",
        "hash",
        "included",
        "settled",
        "ledger",
      ]);
      expect(lines.join("\n")).toContain("available 0.75 TOKEN, held 0 TOKEN, pending 0 TOKEN");
      const tx = decodeTransaction(kit.sent[0] ?? new Uint8Array());
      expect(tx).toMatchObject({ type: 0, chainId: 6940n, nonce: 4n, valueAtoken: 10n ** 18n });
      expect(tx.to).toBe(DEPOSIT_ADDRESS);
      expect(recoverSender(tx)).toBe(privateKeyToAddress(FAUCET_KEY));
      const post = kit.requests.find(
        ({ path, method }) => path === "/v1/withdrawals" && method === "POST",
      );
      expect(post?.headers).toMatchObject({
        authorization: `Bearer ${API_KEY}`,
        "idempotency-key": expect.stringMatching(/^demo-[0-9a-f-]{36}$/),
      });
      expect(JSON.parse(post?.body ?? "{}")).toMatchObject({
        customerId: "demo",
        asset: "TOKEN",
        amountAtoken: "250000000000000000",
      });
    });
  });

  it("takes the policy's service fee for what it is, and names it", async () => {
    const world = { feeUnits: "1000000000000000", availableUnits: "749000000000000000" };
    await withFakeKit(world, async (options, _kit, lines) => {
      const result = await runWalkthrough(options);
      await verifyWalkthrough(result, options);
      expect(lines).toContain("  service fee 0.001 TOKEN, by config/policy.json");
    });
  });

  it("finds out when the ledger took no fee, or a wrong one", async () => {
    await withFakeKit({ feeUnits: "1000000000000000" }, async (options) => {
      const result = await runWalkthrough(options);
      await expect(verifyWalkthrough(result, options)).rejects.toThrow("750000000000000000");
    });
  });

  it("says that it waits for persons where the policy asks for approvals", async () => {
    const withdrawalStatuses = ["pending_approval", "pending_approval", "accepted", "settled"];
    await withFakeKit({ withdrawalStatuses }, async (options, _kit, lines) => {
      await runWalkthrough(options);
      const told = lines.filter((line) => line.startsWith("  approvals"));
      expect(told).toEqual(["  approvals   the policy asks persons first: w1"]);
    });
  });

  it("ends with the reason when the withdrawal fails", async () => {
    await withFakeKit({ withdrawalStatuses: ["accepted", "failed"] }, async (options) => {
      await expect(runWalkthrough(options)).rejects.toThrow('withdrawal w1 is "failed"');
    });
  });

  it("ends with the reason when a deposit goes to suspense", async () => {
    await withFakeKit({ depositStatuses: ["suspense"] }, async (options) => {
      await expect(runWalkthrough(options)).rejects.toThrow('deposit is "suspense"');
    });
  });

  it("gives up a step at its deadline and names it", async () => {
    await withFakeKit({ depositStatuses: ["detected"] }, async (options) => {
      const fault = runWalkthrough({ ...options, stepTimeoutMs: 300 });
      await expect(fault).rejects.toThrow("for the deposit to be credited, in vain");
    });
  });

  it("finds out when the coins did not arrive", async () => {
    await withFakeKit({ paidAtoken: 1n }, async (options) => {
      const result = await runWalkthrough(options);
      await expect(verifyWalkthrough(result, options)).rejects.toMatchObject({ code: "NOT_TRUE" });
    });
  });

  it("finds out when the ledger says something else", async () => {
    await withFakeKit({ availableUnits: "750000000000000001" }, async (options) => {
      const result = await runWalkthrough(options);
      await expect(verifyWalkthrough(result, options)).rejects.toThrow("750000000000000001");
    });
  });
});

describe("the API client", () => {
  it("reports a refusal with the API's own code and never with the key", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(422).end(JSON.stringify({ code: "TOO_LITTLE", message: "no coins" }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createExchangeClient({ depositUrl: url, withdrawalUrl: url, apiKey: API_KEY });
    const fault = client.createAddress("demo", new AbortController().signal);
    await expect(fault).rejects.toMatchObject({ code: "CLIENT_FAILED", retriable: false });
    await expect(fault).rejects.toThrow("POST /v1/addresses answered 422 TOO_LITTLE: no coins");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const gone = client.createAddress("demo", new AbortController().signal);
    await expect(gone).rejects.toThrow("ECONNREFUSED");
    await expect(gone).rejects.not.toThrow(API_KEY);
  });
});

describe("deposits to an address", () => {
  it("are all there, page after page, in whatever state the API knows", async () => {
    const statuses = ["credited", "reversed", "held", "suspense", "detected"];
    const pages = statuses.map((status, index) => ({
      deposits: [
        {
          id: `${index}-0-1`,
          address: DEPOSIT_ADDRESS,
          asset: "TOKEN",
          amountUnits: "1",
          status,
          blockNumber: index,
          blockHash: hashOf("5"),
          txHash: hashOf("a"),
          confirmations: 2,
        },
      ],
      next: index === statuses.length - 1 ? null : `${index + 1}`,
    }));
    const server = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? "/", "http://localhost");
      expect(searchParams.get("address")).toBe(DEPOSIT_ADDRESS);
      response.end(JSON.stringify(pages[Number(searchParams.get("after") ?? "0")]));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createExchangeClient({ depositUrl: url, withdrawalUrl: url, apiKey: API_KEY });
    const found = await client.depositsTo(DEPOSIT_ADDRESS, new AbortController().signal);
    expect(found.map(({ status }) => status)).toEqual(statuses);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

describe("waiting", () => {
  it("shows signs of life and passes faults that cannot heal", async () => {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs, monotonicMs: () => (nowMs += 6_000) };
    const words: string[] = [];
    const options = {
      what: "the moon",
      timeoutMs: 40_000,
      pollMs: 0,
      clock,
      signal: new AbortController().signal,
      onStillWaiting: (message: string) => words.push(message),
    };
    await expect(waitFor(async () => undefined, options)).rejects.toThrow("for the moon, in vain");
    expect(words.length).toBeGreaterThan(1);
    const broken = waitFor(async () => Promise.reject(new Error("bug")), options);
    await expect(broken).rejects.toThrow("bug");
  });
});

describe("the status line", () => {
  it("shows the figures and every part that is not ready, with its reason", () => {
    const status: KitStatus = {
      height: 12,
      blockAgeSeconds: 11.2,
      blockIntervalMs: undefined,
      watcherLagBlocks: 1,
      creditedDeposits: 3,
      withdrawalsInFlight: undefined,
      wallets: [],
      parts: [
        { part: "node", url: "", ready: true, reason: "" },
        { part: "withdrawal-worker", url: "", ready: false, reason: "signing is frozen" },
      ],
    };
    const slow = formatStatusLine({ ...status, blockIntervalMs: 5_000 });
    expect(slow).toContain("block age 11 s | ");
    const line = formatStatusLine(status);
    expect(line).toBe(
      "height 12 | block age 11 s (old!) | watcher lag 1 | credited since start 3 | " +
        "withdrawals in flight ? | withdrawal-worker NOT READY: signing is frozen",
    );
  });

  it("has a reason of several lines, as of wrong settings, in one", async () => {
    const reason = "settings are wrong:\n  policy.json: a = 1\n  policy.json: b = 2";
    const server = createServer((_, response) => {
      response.writeHead(503).end(JSON.stringify({ ready: false, reason }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const { port } = server.address() as AddressInfo;
    const endpoints = endpointsAt(`http://127.0.0.1:${port}`);
    const clock = { nowMs: () => 1_000, monotonicMs: () => 0 };
    const probe = { endpoints, treasury: undefined, evm: EVM, blockIntervalMs: 2_000, clock };
    const { parts } = await readKitStatus(probe, new AbortController().signal);
    server.close();
    const worker = parts.find(({ part }) => part === "withdrawal-worker");
    expect(worker?.reason).toBe("settings are wrong: policy.json: a = 1 policy.json: b = 2");
  });

  it("reads a Prometheus page, summing label sets", () => {
    const page = '# HELP a b\na{x="1"} 2\na{x="2"} 3\nb 1e3\nc_total 7 1700000000\n';
    const values = parseMetricsPage(page);
    expect([values.get("a"), values.get("b"), values.get("c_total")]).toEqual([5, 1_000, 7]);
  });
});

const EVM = {
  getBlockHeader: async () => ({ height: 7, timestampSeconds: 0 }),
} as unknown as EvmClient;

/** A kit whose parts are all at one place. */
function endpointsAt(url: string) {
  return {
    jsonRpcUrl: url,
    webSocketUrl: url,
    cometRpcUrl: url,
    metricsUrl: url,
    restUrl: url,
    grpcAddress: "127.0.0.1:9090",
    sidecarOnlineUrl: url,
    sidecarOfflineUrl: url,
    depositUrl: url,
    withdrawalUrl: url,
    indexerUrl: url,
    explorerUrl: undefined,
    consoleUrl: undefined,
    otherNodes: [],
  };
}

const clock = { nowMs: () => 1_000, monotonicMs: () => 0 };
const probe = {
  endpoints: endpointsAt("http://127.0.0.1:1"),
  treasury: undefined,
  evm: EVM,
  blockIntervalMs: 2_000,
  clock,
};

/** First thing that the line writes on a terminal whose kit does not answer. */
async function shownOn(columns: number): Promise<string> {
  const written: string[] = [];
  const stopping = new AbortController();
  const output = {
    isTty: true,
    columns,
    isBehind: false,
    write: (text: string) => {
      written.push(text);
      stopping.abort();
    },
  };
  await createStatusLine(probe, output).run(stopping.signal);
  return written[0] ?? "";
}

describe("the live line on a terminal", () => {
  it("fits the terminal, also one that does not tell its width", async () => {
    expect(await shownOn(30)).toHaveLength(29);
    expect(await shownOn(0)).toHaveLength(79);
    expect(await shownOn(500)).toContain("deposit-watcher NOT READY");
  });

  it("is left out while its reader pauses; what happened is not", async () => {
    const written: string[] = [];
    const stopping = new AbortController();
    const write = (text: string) => void written.push(text);
    let asked = 0;
    const output = {
      isTty: true,
      columns: 80,
      get isBehind() {
        asked += 1;
        return true;
      },
      write,
    };
    const line = createStatusLine(probe, output);
    const ended = line.run(stopping.signal);
    await until(() => asked > 0, { timeoutMs: 60_000, what: "the line is to be shown" });
    line.interrupt("node was started again");
    stopping.abort();
    await ended;
    expect(written).toEqual(["node was started again\n"]);
  });
});

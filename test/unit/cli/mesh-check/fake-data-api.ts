/** A Data API in this process over a few blocks of transfers, honest until a test changes it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export const TOKEN = { symbol: "TOKEN", decimals: 18 };
export const GOLD = {
  symbol: "GOLD",
  decimals: 6,
  metadata: { contractAddress: "0x77BC4954b16482599962C3Ee6F251E0CDFc1338A" },
};

export const ALICE = { address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" };
export const BOB = { address: "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359" };
export const BOB_STAKED = {
  ...BOB,
  sub_account: { address: "delegated", metadata: { validator: "0x01" } },
};

/** One side of a change. */
export interface Side {
  readonly account: object;
  readonly currency: object;
  readonly value: bigint;
  readonly type?: string;
}

/** A transaction of a block: its sides become operations. */
export interface FakeTransaction {
  readonly hash: string;
  readonly sides: readonly Side[];
  /** Told by /block/transaction only. */
  readonly isFurther?: boolean;
}

/** What a test may replace: an answer per path, or undefined for the honest one. */
export type Override = (path: string, body: Record<string, unknown>) => Answer | undefined;

/** Status and body. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface FakeDataApi {
  readonly url: string;
  readonly requests: { path: string; body: Record<string, unknown> }[];
  override: Override;
  /** Fields of `allow` that a test replaces. */
  allow: Record<string, unknown>;
  close(): Promise<void>;
}

export function blockHash(index: number): string {
  return `0x${(index + 0xb10c).toString(16).padStart(64, "0")}`;
}

const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right);

function operations(transaction: FakeTransaction) {
  return transaction.sides.map(({ account, currency, value, type }, index) => ({
    operation_identifier: { index },
    type: type ?? "CALL",
    status: "SUCCESS",
    account,
    amount: { value: value.toString(), currency },
  }));
}

/** Starts a server over blocks 0, 1, 2 ... */
export async function startFakeDataApi(
  blocks: readonly (readonly FakeTransaction[])[],
): Promise<FakeDataApi> {
  const identifier = (index: number) => ({ index, hash: blockHash(index) });
  const tip = blocks.length - 1;
  const balanceAt = (account: unknown, currency: unknown, at: number) => {
    const sides = blocks
      .slice(0, at + 1)
      .flatMap((block) => block.flatMap(({ sides: all }) => all));
    return sides
      .filter((side) => same(side.account, account) && same(side.currency, currency))
      .reduce((sum, { value }) => sum + value, 0n);
  };
  const reply = (transaction: FakeTransaction) => ({
    transaction_identifier: { hash: transaction.hash },
    operations: operations(transaction),
  });
  const honest: Record<string, (body: Record<string, unknown>) => unknown> = {
    "/network/list": () => ({
      network_identifiers: [{ blockchain: "token", network: "testnet" }],
    }),
    "/network/options": () => ({
      version: {},
      allow: {
        operation_statuses: [{ status: "SUCCESS", successful: true }],
        operation_types: ["CALL", "GENESIS", "ERC20_TRANSFER"],
        errors: [{ code: 1, message: "no", retriable: false }],
        historical_balance_lookup: true,
        call_methods: [],
        balance_exemptions: [],
        block_hash_case: "lower_case",
        transaction_hash_case: "lower_case",
        ...api.allow,
      },
    }),
    "/network/status": () => ({ current_block_identifier: identifier(tip) }),
    "/block": ({ block_identifier: wanted }) => {
      const { index } = wanted as { index: number };
      const block = blocks[index] ?? [];
      const further = block.filter(({ isFurther }) => isFurther === true);
      return {
        block: {
          block_identifier: identifier(index),
          parent_block_identifier: identifier(Math.max(0, index - 1)),
          timestamp: 1_750_000_000_000 + index * 2_000,
          transactions: block.filter(({ isFurther }) => isFurther !== true).map(reply),
        },
        other_transactions: further.map(({ hash }) => ({ hash })),
      };
    },
    "/block/transaction": ({ transaction_identifier: wanted }) => {
      const { hash } = wanted as { hash: string };
      const found = blocks.flat().find((transaction) => transaction.hash === hash);
      return found === undefined ? {} : { transaction: reply(found) };
    },
    "/account/balance": (body) => {
      const wanted = body["block_identifier"] as { index?: number; hash?: string };
      const index = wanted.index ?? blocks.findIndex((_, at) => blockHash(at) === wanted.hash);
      const currencies = body["currencies"] as object[];
      return {
        block_identifier: identifier(index),
        balances: currencies.map((currency) => ({
          currency,
          value: balanceAt(body["account_identifier"], currency, index).toString(),
        })),
      };
    },
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const path = request.url ?? "";
      const body: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      api.requests.push({ path, body });
      const answer = api.override(path, body) ?? { status: 200, body: honest[path]?.(body) };
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const api: FakeDataApi = {
    url: `http://127.0.0.1:${port}`,
    requests: [],
    override: () => undefined,
    allow: {},
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}

/**
 * Payouts of tokens over a token bench: the lane over the node's own pool and EVM, and hands between
 * its steps.
 */
import { afterAll, beforeAll } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { Contract, JsonRpcProvider } from "ethers";
import type { Hex } from "../../../chain/hex.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { releaseWithdrawal } from "../../../ledger/withdrawals/release/release.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { ANY_REQUEST, laneRules } from "../../helpers/keys/signing.js";
import { roleUrl, silentLog } from "../../helpers/services/ledger.js";
import {
  freshAddress,
  House,
  requestOf,
  WALLET,
  WALLET_KEY,
} from "../../helpers/exchange/house.js";
import { callOf, contractAt, TokenBench, TOKENS } from "./token-bench.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";

const { signal } = new AbortController();

/** The lane, and what was put into its hands; `close` ends all of it. */
export class PayoutBench {
  /** What the lane sent since the last block. */
  sent: Hex[] = [];
  /** Done once, before the lane's next estimate of a token's transfer. */
  beforeEstimate: (() => Promise<unknown>) | undefined;
  /** Done once, between the lane's next nonces and their signatures. */
  behindSlots: (() => Promise<unknown>) | undefined;
  /** Done once, between the lane's next signatures and their sending. */
  behindSignatures: (() => Promise<unknown>) | undefined;
  /** What the node says to whatever is sent; undefined while it takes it. */
  refusal: string | undefined;
  readonly lane: Lane;

  private constructor(
    readonly bench: TokenBench,
    readonly house: House,
    readonly provider: JsonRpcProvider,
    /** In the roles of the worker and of a person's commands. */
    readonly worker: LedgerDatabase,
    readonly operator: LedgerDatabase,
  ) {
    this.lane = this.openLane();
  }

  /** With tokens of the hot wallet's, and deposits of alice's that are credited. */
  static async open(): Promise<PayoutBench> {
    const bench = await TokenBench.open();
    const house = await House.open();
    const alice = await bench.register("alice");
    await bench.watch();
    await bench.deploy();
    await bench.mine([
      callOf("PlainToken", "mint", [WALLET, 500n]),
      callOf("MoodyToken", "mint", [WALLET, 1_000n]),
      callOf("PlainToken", "mint", [alice, 1_000n]),
      callOf("MoodyToken", "mint", [alice, 1_000n]),
      callOf("UpgradableProxy", "mint", [WALLET, 10_000n]),
      callOf("UpgradableProxy", "mint", [alice, 1_000n]),
      { to: WALLET, value: 10n ** 18n },
      { to: alice, value: 10n ** 15n },
    ]);
    await settleBlocks(bench);
    const [worker, operator] = await Promise.all([
      openAs(bench, "worker"),
      openAs(bench, "operator"),
    ]);
    const provider = new JsonRpcProvider(bench.chain.url, 6940, { staticNetwork: true });
    return new PayoutBench(bench, house, provider, worker, operator);
  }

  async close(): Promise<void> {
    this.provider.destroy();
    await Promise.all([this.worker.close(), this.operator.close()]);
    await this.house.close();
    await this.bench.close();
  }

  /** A lane of the bench's ledger and chain, with the settings of the lane's other tests. */
  openLane(settings: Partial<LaneSettings> = {}): Lane {
    const { bench } = this;
    const context = this.house.context(settings);
    const database = this.worker;
    const ledger = createLaneLedger(database);
    const genesisHash = bench.chain.chain.view.genesis().block.hash;
    const node = createPatientNode(bench.rpc, { chainId: 6940n, genesisHash });
    return new Lane(
      {
        ...context,
        ...laneRules({
          privateKey: WALLET_KEY,
          chainId: 6940n,
          limits: {
            gasPriceCapAtoken: context.settings.gas.priceCapAtoken,
            gasLimitMax: context.settings.gas.limitMax,
          },
          sql: database,
          contractOf: (asset) => TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress,
        }),
        ledger: {
          ...ledger,
          takeSlots: async (...asked) => {
            const taken = await ledger.takeSlots(...asked);
            const task = this.behindSlots;
            this.behindSlots = undefined;
            await task?.();
            return taken;
          },
          storeAttempts: async (...asked) => {
            const isStored = await ledger.storeAttempts(...asked);
            const task = this.behindSignatures;
            this.behindSignatures = undefined;
            await task?.();
            return isStored;
          },
        },
        guard: createLaneGuard({ database, wallet: WALLET, log: silentLog }),
        node: {
          ...node,
          estimate: async (...asked) => {
            const task = asked[1].length > 0 ? this.beforeEstimate : undefined;
            if (task !== undefined) this.beforeEstimate = undefined;
            await task?.();
            return node.estimate(...asked);
          },
          send: async (raws, options) => {
            if (this.refusal !== undefined) {
              const rpc = { rpcCode: -32_000, method: "eth_sendRawTransaction" };
              const error = new RpcError(this.refusal, rpc);
              return raws.map(() => ({ outcome: "refused" as const, error }));
            }
            this.sent.push(...raws);
            return node.send(raws, options);
          },
        },
      },
      "worker",
    );
  }

  /** Two blocks, until all deposits of before are credited. */
  settleBlocks(): Promise<void> {
    return settleBlocks(this.bench);
  }

  /** A request of alice's, to a fresh address. */
  async accept(asset: string, amountUnits: bigint): Promise<Withdrawal> {
    const destination = freshAddress();
    const request = requestOf({ asset, amountUnits, destination, idempotencyKey: randomUUID() });
    const [outcome] = await acceptWithdrawals(this.worker, [request], ANY_REQUEST);
    if (outcome?.outcome !== "accepted") throw new Error(JSON.stringify(outcome));
    return outcome.withdrawal;
  }

  async read({ id }: Withdrawal): Promise<Withdrawal> {
    const found = await findWithdrawal(this.bench.database, id);
    if (found === undefined) throw new Error("it is gone");
    return found;
  }

  /** Requests that wait are due at once. */
  hurry() {
    return this.bench.ledger.owner.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
  }

  /** Rounds of the lane, each with a block of what it sent; requests that wait are due each time. */
  async rounds(count: number): Promise<void> {
    for (let round = 0; round < count; round++) {
      this.house.clock.ms += 3_000;
      await this.hurry();
      await this.lane.runRound(signal);
      const raws = [...new Set(this.sent)];
      this.sent = [];
      await this.bench.mine([], raws);
      // Nothing of a token is settled before the watcher has looked at its block.
      await this.bench.caughtUp();
    }
  }

  /** Rounds of a lane while the watcher stands still, each with a block of what it sent. */
  async roundsUnwatched(own: Lane, count: number): Promise<void> {
    for (let round = 0; round < count; round++) {
      this.house.clock.ms += 3_000;
      await this.hurry();
      await own.runRound(signal);
      const raws = [...new Set(this.sent)];
      this.sent = [];
      await this.bench.mine([], raws);
    }
  }

  /** A person has the chain looked at again. */
  async lookAgain({ id }: Withdrawal) {
    const { node } = this.bench;
    const { obstacles } = await releaseWithdrawal(
      {
        database: this.operator,
        wallet: WALLET,
        chainOf: (wallet) => ({
          headHeight: () => node.blockNumber({ signal }),
          nonceAt: (at) => node.getTransactionCount(wallet, at, { signal }),
          queuedNonces: () => node.queuedNonces(wallet, { signal }),
          receipts: (hashes) => node.getTransactionReceipts(hashes, { signal }),
          transactions: async () => [],
        }),
        paymentOf: async () => undefined,
      },
      id,
      { decision: "look-again" },
    );
    return obstacles;
  }

  async balanceOf(customer: string, asset: string) {
    const balances = await customerBalances(this.bench.database, parseCustomerId(customer));
    return balances?.find((each) => each.asset === asset);
  }

  /** A paused token counts again. */
  async goOn(asset = "MOODY"): Promise<void> {
    await this.bench.ledger.owner.query(
      `UPDATE token_state SET paused = false, reason = '', changed_by = 'test' WHERE asset = $1`,
      [asset],
    );
  }

  /** As ethers reads it. */
  held(name: "PlainToken" | "MoodyToken", account: string): Promise<bigint> {
    const abi = ["function balanceOf(address) view returns (uint256)"];
    const token = new Contract(contractAt(name), abi, this.provider);
    return token.getFunction("balanceOf")(account);
  }
}

/** One for all tests of a file. */
export function payoutsForTests(take: (payouts: PayoutBench) => void): void {
  let payouts: PayoutBench | undefined;
  beforeAll(async () => {
    payouts = await PayoutBench.open();
    take(payouts);
  });
  afterAll(() => payouts?.close());
}

function openAs(bench: TokenBench, service: "worker" | "operator"): Promise<LedgerDatabase> {
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const identity = { chainId: 6940n, genesisHash };
  const url = roleUrl(bench.ledger.ownerUrl, service);
  return openLedger({ url, log: silentLog, signal, identity });
}

async function settleBlocks(bench: TokenBench): Promise<void> {
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
}

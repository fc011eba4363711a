/**
 * A lane for each wallet of the ledger: one that is registered later gets its own without a restart,
 * and one whose keystore comes later begins to sign. A retired wallet keeps a lane that only books.
 */
import type { Address } from "../chain/address.js";
import { errorMessage } from "../chain/errors.js";
import { readPayable } from "../ledger/wallets/payable-wallets.js";
import { type HotWallet, listWallets } from "../ledger/wallets/wallet.js";
import type { Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import { createWakeup, TaskGroup } from "../runtime/process/task.js";
import type { Sql } from "../runtime/sql/sql.js";
import { SqlError } from "../runtime/sql/sql-errors.js";
import type { Lane, LaneStatus } from "./lane/lane.js";
import type { Signer } from "./signers/signer-port.js";
import { signerWithoutKey, type WalletKeys } from "./wallet-keys.js";

/** Longest wait before a new wallet, or a new keystore, is seen. */
const REFRESH_MS = 2_000;

/** Requests are taken all the same. */
const NOBODY_PAYS =
  "no wallet is active and not frozen whose key a worker holds: what is accepted waits; " +
  "`causeway wallets list` shows them";

/** Wallets whose files a reason names; the log has all of them. */
const SHOWN_FAULTS = 3;

/** The key of a lane's wallet, as far as there is one. */
export interface LaneKey {
  readonly signer: Signer;
  readonly hasKey: () => boolean;
}

/** Where wallets and keys are found, and how a lane is made of them. */
export interface LanesParts {
  readonly database: Sql;
  readonly keys: Pick<WalletKeys, "signerOf" | "faultOf" | "refresh">;
  readonly createLane: (wallet: Address, key: LaneKey) => Lane;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told of a broken invariant of a lane. */
  readonly onFault: (error: unknown) => void;
}

/** What a wallet's lane is doing. */
export interface WalletLaneStatus extends LaneStatus {
  readonly wallet: Address;
  /** True where a keystore of this home opens the wallet. */
  readonly hasKey: boolean;
}

interface Running {
  readonly lane: Lane;
  readonly hasKey: () => boolean;
}

/** The running lanes of one worker. */
export class Lanes implements Service {
  readonly name = "lanes";
  readonly #parts: LanesParts;
  readonly #tasks: TaskGroup;
  readonly #lanes = new Map<Address, Running>();
  readonly #wakeup = createWakeup();
  /** Undefined while the wallets could be read. */
  #problem: string | undefined = "the wallets have not been read yet";
  /** Set while no wallet of the ledger can pay what is accepted, here or elsewhere. */
  #unpaid: string | undefined;

  constructor(parts: LanesParts) {
    this.#parts = parts;
    const { signal, onFault } = parts;
    this.#tasks = new TaskGroup({ signal, onFault: (_name, error) => onFault(error) });
  }

  /** Begins to work. */
  start(): void {
    this.#tasks.run("wallets", (signal) => this.#follow(signal));
  }

  /** Makes the next round of every lane come at once. */
  wake(): void {
    for (const { lane } of this.#lanes.values()) lane.wake();
  }

  /** Of every lane, in the order in which they began. */
  statuses(): readonly WalletLaneStatus[] {
    return [...this.#lanes].map(([wallet, { lane, hasKey }]) => ({
      wallet,
      hasKey: hasKey(),
      ...lane.status(),
    }));
  }

  /** Why something does not go on that should; undefined when all does. */
  blockedReason(): string | undefined {
    const statuses = this.statuses();
    const blocked = statuses.find(
      ({ blockedReason, hasKey }) => hasKey && blockedReason !== undefined,
    );
    if (blocked === undefined) return this.#problem ?? this.#unpaid;
    const { wallet, blockedReason } = blocked;
    return statuses.length === 1 ? blockedReason : `wallet ${wallet}: ${blockedReason}`;
  }

  /** Ends every lane, each behind its round. */
  stop(): Promise<void> {
    return this.#tasks.stop();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#refresh();
      await this.#wakeup.wait({ signal, timeoutMs: REFRESH_MS }).catch(() => undefined);
    }
  }

  async #refresh(): Promise<void> {
    this.#parts.keys.refresh();
    try {
      const wallets = await listWallets(this.#parts.database);
      for (const { address } of wallets) {
        if (!this.#lanes.has(address)) this.#open(address);
      }
      this.#noteUnpaid((await this.#canPay(wallets)) ? undefined : this.#whyUnpaid(wallets));
      this.#problem = undefined;
    } catch (error) {
      if (!(error instanceof SqlError && error.retriable)) throw error;
      this.#problem = `the wallets cannot be read: ${errorMessage(error)}`;
    }
  }

  /** By keys of this home, whose lanes say themselves why they do not pay, or by what others say. */
  async #canPay(wallets: readonly HotWallet[]): Promise<boolean> {
    const isOwn = ({ address, status }: HotWallet) =>
      status === "active" && this.#lanes.get(address)?.hasKey() === true;
    return wallets.some(isOwn) || (await readPayable(this.#parts.database)).length > 0;
  }

  /** With the files of active wallets that this home has, and cannot open. */
  #whyUnpaid(wallets: readonly HotWallet[]): string {
    const faults = wallets.flatMap(({ address, status }) => {
      const fault = status === "active" ? this.#parts.keys.faultOf(address) : undefined;
      return fault === undefined ? [] : [`wallet ${address}: ${fault}`];
    });
    return [NOBODY_PAYS, ...faults.slice(0, SHOWN_FAULTS)].join("; ");
  }

  /** It is told when it begins, and when it is another one. */
  #noteUnpaid(reason: string | undefined): void {
    if (reason !== undefined && reason !== this.#unpaid) {
      this.#parts.log.error({ reason }, "nothing can be paid");
    }
    this.#unpaid = reason;
  }

  #open(wallet: Address): void {
    const { keys, createLane, log } = this.#parts;
    const hasKey = () => keys.signerOf(wallet) !== undefined;
    const key: LaneKey = {
      get signer() {
        return keys.signerOf(wallet) ?? signerWithoutKey(wallet, keys.faultOf(wallet));
      },
      hasKey,
    };
    const lane = createLane(wallet, key);
    this.#lanes.set(wallet, { lane, hasKey });
    if (!hasKey()) log.warn({ wallet }, "no keystore of this home opens this wallet");
    this.#tasks.run(`lane of ${wallet}`, (signal) => lane.run(signal));
  }
}

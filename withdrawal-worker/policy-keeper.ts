/**
 * The policy in force: the home's file, in the ledger before it counts. A file that is gone or wrong
 * stops new requests and nonces until it is mended; nobody goes back to what it said before.
 */
import { existsSync } from "node:fs";
import { errorMessage } from "../chain/errors.js";
import { LedgerError } from "../ledger/errors.js";
import { loadPolicyFile, PolicyFile } from "../ledger/policy/policy-file.js";
import { type HashedPolicy, PERMISSIVE_POLICY, policyFileText } from "../ledger/policy/policy.js";
import {
  type Activation,
  activatePolicy,
  activePolicyHash,
  isActivated,
} from "../ledger/policy/policy-store.js";
import { rejudgePending } from "../ledger/policy/stored-judgement.js";
import { createFileOnce, SECRET_MODE } from "../runtime/files/durable-file.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Logger } from "../runtime/process/logger.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { sleep } from "../runtime/process/task.js";
import { WorkerError } from "./errors.js";
import type { PolicySource } from "./lane/lane-context.js";

/** How long a policy is believed to be in force without asking: a ledger may be put back under us. */
const ACTIVE_LIFE_MS = 1_000;

/**
 * The policy as a home's file says it, for who judges no customer's request: it brings nothing into
 * force. That home may be another than the worker's, and its copy of the policy an older one.
 */
export class PolicyReader implements PolicySource {
  readonly #file: PolicyFile;
  readonly #log: Logger;
  #trouble: string | undefined;

  constructor({ file, log }: Pick<PolicyKeeperParts, "file" | "log">) {
    this.#file = new PolicyFile(file);
    this.#log = log;
  }

  /** Why no policy can be had; undefined while one can. */
  trouble(): string | undefined {
    return this.#trouble;
  }

  async current(): Promise<HashedPolicy> {
    return this.read();
  }

  /** The same at once. @throws POLICY_UNREADABLE */
  read(): HashedPolicy {
    try {
      const policy = this.#file.read();
      this.#trouble = undefined;
      return policy;
    } catch (cause) {
      const message = `the policy cannot be used: ${errorMessage(cause)}`;
      if (this.#trouble === undefined) this.#log.error({ message }, "nothing is paid");
      this.#trouble = message;
      throw new WorkerError("POLICY_UNREADABLE", message, { retriable: true, cause });
    }
  }
}

/** What a keeper is made of. */
export interface PolicyKeeperParts {
  readonly database: SqlDatabase;
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Watches the file of one home. */
export class PolicyKeeper implements PolicySource {
  readonly #parts: PolicyKeeperParts;
  readonly #reader: PolicyReader;
  /** What is in force by this process' doing, or known to be, and when the ledger was last asked. */
  #active: (Activation & { readonly hash: string; readonly askedMs: number }) | undefined;
  /** What waits for persons under another policy was judged by this one, since the ledger was asked. */
  #isRejudged = false;

  private constructor(parts: PolicyKeeperParts) {
    this.#parts = parts;
    this.#reader = new PolicyReader(parts);
  }

  /**
   * Brings the file's policy into force. A home without one gets the permissive one, unless the
   * ledger has known another: then the file was lost.
   * @throws POLICY_UNREADABLE; ConfigError with every fault of the file; database faults
   */
  static async open(parts: PolicyKeeperParts): Promise<PolicyKeeper> {
    const { database, file } = parts;
    if (!existsSync(file)) {
      if ((await activePolicyHash(database)) !== undefined) {
        const message = `${file} is gone, and the ledger has known a policy: restore it`;
        throw new WorkerError("POLICY_UNREADABLE", message);
      }
      createFileOnce(file, policyFileText(PERMISSIVE_POLICY), SECRET_MODE);
    }
    const keeper = new PolicyKeeper(parts);
    loadPolicyFile(file);
    await keeper.current();
    return keeper;
  }

  /** Why no policy can be had; undefined while one can. */
  trouble(): string | undefined {
    return this.#reader.trouble();
  }

  /**
   * Looks at the file again and again until the signal fires, also while nobody asks for anything: a
   * change comes into force then, too, and a fault shows on /ready and goes when it was mended.
   */
  async follow({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    for (;;) {
      await sleep(ACTIVE_LIFE_MS, { signal });
      // What is wrong with the file is told by `trouble`, what is wrong with the ledger by who needs it.
      await this.current().catch(() => undefined);
    }
  }

  async current(): Promise<HashedPolicy> {
    let policy = this.#reader.read();
    if (!(await this.#isInForce(policy))) {
      const { database, clock, log } = this.#parts;
      const askedMs = clock.monotonicMs();
      const read = () => this.#reader.read();
      const { id, isNew, ...activated } = await activatePolicy(database, read);
      ({ policy } = activated);
      if (isNew) log.info({ hash: policy.hash }, "a policy came into force");
      this.#active = { id, isNew, hash: policy.hash, askedMs };
      this.#isRejudged = false;
    }
    if (!this.#isRejudged) await this.#rejudge(policy);
    return policy;
  }

  async #isInForce(policy: HashedPolicy): Promise<boolean> {
    const active = this.#active;
    if (active?.hash !== policy.hash) return false;
    const { database, clock } = this.#parts;
    const askedMs = clock.monotonicMs();
    if (askedMs - active.askedMs < ACTIVE_LIFE_MS) return true;
    if (!(await isActivated(database, policy, active))) return false;
    this.#active = { ...active, askedMs };
    // What was accepted by a policy of before may have been written down behind the last look.
    this.#isRejudged = false;
    return true;
  }

  async #rejudge(policy: HashedPolicy): Promise<void> {
    try {
      await rejudgePending(this.#parts.database, policy);
      if (this.#active?.hash === policy.hash) this.#isRejudged = true;
    } catch (error) {
      // A ledger that is being recovered decides nothing; it is judged when it is open again.
      if (!(error instanceof LedgerError && error.code === "RECOVERY")) throw error;
    }
  }
}

/**
 * The policy in force: the home's file, in the ledger before it counts. A file that is gone or wrong
 * stops new requests and nonces until it is mended; nobody goes back to what it said before. So does one
 * that another home's has taken the place of: what was forbidden there is not paid here.
 */
import { existsSync } from "node:fs";
import type { KnownNonces } from "../ledger/requests/signing-freeze.js";
import { errorCode, errorMessage } from "../chain/errors.js";
import { LedgerError } from "../ledger/errors.js";
import { loadPolicyFile, PolicyFile } from "../ledger/policy/policy-file.js";
import { type HashedPolicy, PERMISSIVE_POLICY, policyFileText } from "../ledger/policy/policy.js";
import { policyMarkPath, policyPath } from "../ledger/policy/policy-paths.js";
import { unreachableRules } from "../ledger/policy/out-of-reach.js";
import {
  activatePolicy,
  activationOf,
  activePolicyHash,
  type LatestPolicy,
  type NextPolicy,
  standingOf,
} from "../ledger/policy/policy-store.js";
import { rejudgePending } from "../ledger/policy/stored-judgement.js";
import { createFileOnce, SECRET_MODE } from "../runtime/files/durable-file.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Logger } from "../runtime/process/logger.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { sleep } from "../runtime/process/task.js";
import { WorkerError } from "./errors.js";
import type { PolicySource } from "./lane/lane-context.js";
import { type PolicyMark, readPolicyMark, writePolicyMark } from "./policy-mark.js";

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

  constructor({ file, log }: { readonly file: string } & Pick<PolicyKeeperParts, "log">) {
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

/** Where the policy's file lies, and the ledger that it is brought into force in. */
export interface PolicyKeeperParts {
  readonly database: SqlDatabase;
  readonly home: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Next nonces that lanes of this process were shown: behind them nothing is rejected at once. */
  readonly shownNonces?: KnownNonces;
  /** Whether the chain was asked about all wallets: before that nothing is rejected. Default yes. */
  readonly wasChainAsked?: () => boolean;
}

/** Watches the policy's file of one home, and has what it says put in force. */
export class PolicyKeeper implements PolicySource {
  readonly #parts: PolicyKeeperParts;
  readonly #reader: PolicyReader;
  /** What is in force by this home's doing, or known to be, and when the ledger was last asked. */
  #active: (PolicyMark & { readonly askedMs: number }) | undefined;
  /** What this home was about to bring into force, and has not heard of. */
  #next: NextPolicy | undefined;
  /** Why the file does not count although it can be read. */
  #replaced: string | undefined;
  /** What waits for persons under another policy was judged by this one, since the ledger was asked. */
  #isRejudged = false;
  /** Hash of the policy whose rules that nobody can meet were told last. */
  #told: string | undefined;

  private constructor(parts: PolicyKeeperParts, mark: PolicyMark | undefined) {
    const { home, log } = parts;
    this.#parts = parts;
    this.#reader = new PolicyReader({ file: policyPath(home), log });
    this.#active = mark && { hash: mark.hash, id: mark.id, askedMs: Number.NEGATIVE_INFINITY };
    this.#next = mark?.next;
  }

  /**
   * Brings the file's policy into force, unless it was there before, or is a new home's, and another home's
   * came since. A home without one gets the permissive one, unless the ledger has known another: then the
   * file was lost.
   * @throws POLICY_UNREADABLE; ConfigError with every fault of the file; database faults
   */
  static async open(parts: PolicyKeeperParts): Promise<PolicyKeeper> {
    const { database, home } = parts;
    const file = policyPath(home);
    if (!existsSync(file)) {
      if ((await activePolicyHash(database)) !== undefined) {
        const message = `${file} is gone, and the ledger has known a policy: restore it`;
        throw new WorkerError("POLICY_UNREADABLE", message);
      }
      createFileOnce(file, policyFileText(PERMISSIVE_POLICY), SECRET_MODE);
    }
    const keeper = new PolicyKeeper(parts, readPolicyMark(policyMarkPath(home)));
    loadPolicyFile(file);
    try {
      await keeper.current();
    } catch (error) {
      // Where another home's is in force it is told as of a running process, and mended as there.
      if (keeper.trouble() === undefined) throw error;
    }
    return keeper;
  }

  /** Why no policy can be had; undefined while one can. */
  trouble(): string | undefined {
    return this.#reader.trouble() ?? this.#replaced;
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
      const read = (latest: LatestPolicy | undefined) => this.#readNext(latest);
      const { id, isNew, ...activated } = await activatePolicy(database, read);
      ({ policy } = activated);
      const { hash } = policy;
      if (isNew) log.info({ hash }, "a policy came into force");
      await this.#know({ hash, id, askedMs });
    }
    this.#tellUnreachable(policy);
    if (!this.#isRejudged) await this.#rejudge(policy);
    return policy;
  }

  /**
   * What is to come into force. A home that remembers one learns of the next before the ledger does: killed
   * behind the commit it would take that change for one that a person has made since.
   */
  async #readNext(latest: LatestPolicy | undefined): Promise<HashedPolicy> {
    const policy = this.#reader.read();
    const { hash } = policy;
    if (this.#active !== undefined) {
      const latestId = latest?.id ?? 0;
      this.#next = { hash, after: latest?.hash === hash ? latestId - 1 : latestId };
      await this.#remember(this.#active);
    }
    return policy;
  }

  /** Hears what became of a change whose process was killed, or whose commit nobody answered. */
  async #hear({ hash }: HashedPolicy): Promise<void> {
    if (this.#next?.hash !== hash) return;
    const id = await activationOf(this.#parts.database, this.#next);
    if (id !== undefined) await this.#know({ hash, id, askedMs: Number.NEGATIVE_INFINITY });
  }

  #tellUnreachable({ hash, policy }: HashedPolicy): void {
    if (this.#told === hash) return;
    this.#told = hash;
    for (const rule of unreachableRules(policy)) {
      this.#parts.log.warn({ hash, ...rule }, "nothing that needs these approvals can be paid");
    }
  }

  async #isInForce(policy: HashedPolicy): Promise<boolean> {
    await this.#hear(policy);
    const active = this.#active;
    if (active !== undefined && active.hash !== policy.hash) return false;
    const { database, clock } = this.#parts;
    const askedMs = clock.monotonicMs();
    if (active !== undefined && askedMs - active.askedMs < ACTIVE_LIFE_MS) return true;
    const found = await standingOf(database, policy, active);
    if (found.standing === "lost") return false;
    if (found.standing === "replaced") throw this.#refuse(policy, found);
    // A change may have come into force meanwhile, by another call of this process.
    if (this.#active === active) await this.#know({ hash: policy.hash, id: found.id, askedMs });
    return true;
  }

  /** What is in force; the home remembers it. */
  async #know(active: PolicyMark & { readonly askedMs: number }): Promise<void> {
    const isSame = this.#active?.hash === active.hash && this.#active.id === active.id;
    this.#active = active;
    if (this.#next?.hash === active.hash) this.#next = undefined;
    this.#replaced = undefined;
    // What was accepted by a policy of before may have been written down behind the last look.
    this.#isRejudged = false;
    if (!isSame) await this.#remember(active);
  }

  async #remember({ hash, id }: PolicyMark): Promise<void> {
    const { home, log } = this.#parts;
    try {
      await writePolicyMark(policyMarkPath(home), { hash, id, next: this.#next });
    } catch (error) {
      // This process knows it all the same; the next one knows what was remembered before.
      const reason = errorCode(error);
      log.warn({ reason }, "the home cannot remember which policy it brought into force");
    }
  }

  /** Nobody forbade here what is forbidden where a person changed the policy: nothing is paid. */
  #refuse({ hash }: HashedPolicy, { by, at }: { readonly by: string; readonly at: string }) {
    const { home, log } = this.#parts;
    const whose = this.#active === undefined ? "is a former one, or a new home's" : "was in force";
    const message =
      `the policy cannot be used: ${policyPath(home)} (${shown(hash)}) ${whose}, and since ${at} ` +
      `another worker's is in force (${shown(by)}): put that one here, or change this one`;
    if (this.#replaced === undefined) log.error({ message }, "nothing is paid");
    this.#replaced = message;
    return new WorkerError("POLICY_UNREADABLE", message, { retriable: true });
  }

  async #rejudge(policy: HashedPolicy): Promise<void> {
    if (this.#parts.wasChainAsked?.() === false) return;
    try {
      await rejudgePending(this.#parts.database, policy, this.#parts.shownNonces);
      if (this.#active?.hash === policy.hash) this.#isRejudged = true;
    } catch (error) {
      // A ledger that is being recovered decides nothing; it is judged when it is open again.
      if (!(error instanceof LedgerError && error.code === "RECOVERY")) throw error;
    }
  }
}

/** Enough of a hash to tell two from each other. */
function shown(hash: string): string {
  return hash.slice(0, 12);
}

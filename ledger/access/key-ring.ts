/**
 * The keys that open an API: the one of the home's file, which may do everything, and those of the
 * ledger. A key that was made counts at once; one that was revoked stops within `KEY_LIFE_MS`, but for what
 * can only stop, which it may while the ledger cannot be asked.
 */
import { LRUCache } from "lru-cache";
import {
  type Caller,
  hasDigest,
  type HttpAccess,
  keyDigest,
  noValidKey,
  type RecordedCall,
} from "../../runtime/http/http-access.js";
import { requestError } from "../../runtime/http/http-errors.js";
import { signatureReplayed } from "../../runtime/http/signed-request.js";
import { Batcher } from "../../runtime/process/batcher.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { isLockKept } from "../../runtime/sql/sql-errors.js";
import { type CallRecord, recordCalls } from "./api-calls.js";
import { type ApiKey, apiKeyDigest, findApiKeys, type KnownApiKey } from "./api-keys.js";

/** How long a key of the ledger is believed without asking again. */
export const KEY_LIFE_MS = 1_000;

/** How long ago a key must have been good at most to stop payments while the ledger cannot be asked. */
export const RECALL_MS = 3_600_000;

/** Name of the home's own key in records. */
const FILE_KEY_ID = "api.key";

/** Keys in memory; others are asked for again. */
const MAX_KNOWN_KEYS = 10_000;

/** Longer texts are no keys of ours, and are not looked up. */
const MAX_KEY_LENGTH = 256;

const MAX_BATCH = 1_000;

/** Where keys are looked up: the ledger's, and the one of the home's file, which needs no row. */
export interface KeyRingParts {
  readonly database: SqlDatabase;
  /** Content of `config/api.key`. */
  readonly fileKey: string;
  /** Name of the API in the record of calls. */
  readonly service: string;
  readonly clock: Clock;
}

interface KnownKey {
  readonly key: KnownApiKey;
  readonly askedMs: number;
}

/** Calls that a key may still make, refilled with time. */
interface Allowance {
  calls: number;
  filledMs: number;
}

/** The gate of an exchange API, over the ledger's tables. */
export class KeyRing implements HttpAccess {
  readonly #parts: KeyRingParts;
  readonly #fileDigest: Buffer;
  readonly #known = new LRUCache<string, KnownKey>({ max: MAX_KNOWN_KEYS });
  readonly #allowances = new LRUCache<string, Allowance>({ max: MAX_KNOWN_KEYS });
  readonly #lookups: Batcher<string, { readonly key: KnownApiKey | undefined }>;
  readonly #records: Batcher<RecordedCall, CallRecord>;

  constructor(parts: KeyRingParts) {
    const { database, service } = parts;
    this.#parts = parts;
    this.#fileDigest = keyDigest(parts.fileKey);
    this.#lookups = new Batcher({
      run: async (digests) => {
        const found = await findApiKeys(database, digests);
        return digests.map((digest) => ({ key: found.get(digest) }));
      },
      maxBatchItems: MAX_BATCH,
    });
    this.#records = new Batcher({
      run: (calls) => recordCalls(database, { service, nowMs: this.nowMs() }, calls),
      maxBatchItems: MAX_BATCH,
      // Who waits behind a lock that is kept has waited for it, too.
      endsWaiting: isLockKept,
    });
  }

  /** @throws requestError 401, 429; SqlError while the ledger cannot be asked for a key */
  async identify(bearerKey: string | undefined): Promise<Caller> {
    if (bearerKey === undefined) throw noValidKey();
    if (hasDigest(bearerKey, this.#fileDigest)) return { keyId: FILE_KEY_ID, scopes: "all" };
    const caller = this.#callerOf(await this.#find(bearerKey));
    if (caller === undefined) throw noValidKey();
    return caller;
  }

  /** @throws requestError 429 */
  recall(bearerKey: string | undefined): Caller | undefined {
    const known = bearerKey === undefined ? undefined : this.#known.get(apiKeyDigest(bearerKey));
    if (known === undefined) return undefined;
    const ageMs = this.#parts.clock.monotonicMs() - known.askedMs;
    return ageMs < RECALL_MS ? this.#callerOf(known.key) : undefined;
  }

  /** Who has a key that has not expired, of whose calls one is spent. @throws requestError 429 */
  #callerOf(key: KnownApiKey | undefined): Caller | undefined {
    const nowMs = this.#parts.clock.nowMs();
    if (key === undefined || (key.expiresAt !== undefined && key.expiresAt.getTime() <= nowMs)) {
      return undefined;
    }
    this.#spend(key);
    return { keyId: key.id, scopes: new Set<string>(key.scopes), verifier: key.verifier };
  }

  /**
   * A body may be long in coming: the key is held against the ledger once more.
   * @throws requestError 401 for a signed call that was let through before, and for a key that has ended
   */
  async record(call: RecordedCall): Promise<void> {
    const became = await this.#records.addOne(call);
    if (became === "key-ended") throw noValidKey();
    if (became === "repeated") throw signatureReplayed();
  }

  nowMs(): number {
    return this.#parts.clock.nowMs();
  }

  async #find(bearerKey: string): Promise<KnownApiKey | undefined> {
    if (bearerKey.length > MAX_KEY_LENGTH) return undefined;
    const digest = apiKeyDigest(bearerKey);
    const known = this.#known.get(digest);
    const nowMs = this.#parts.clock.monotonicMs();
    if (known !== undefined && nowMs - known.askedMs < KEY_LIFE_MS) return known.key;
    const { key } = await this.#lookups.addOne(digest);
    if (key === undefined) this.#known.delete(digest);
    else this.#known.set(digest, { key, askedMs: nowMs });
    return key;
  }

  /** Takes one call from the key's allowance, which holds a second's calls at most. */
  #spend({ id, callsPerSecond }: ApiKey): void {
    if (callsPerSecond === undefined) return;
    const nowMs = this.#parts.clock.monotonicMs();
    const allowance = this.#allowances.get(id) ?? { calls: callsPerSecond, filledMs: nowMs };
    const gained = ((nowMs - allowance.filledMs) / 1_000) * callsPerSecond;
    allowance.calls = Math.min(callsPerSecond, allowance.calls + gained);
    allowance.filledMs = nowMs;
    this.#allowances.set(id, allowance);
    if (allowance.calls < 1) {
      throw requestError(429, `the API key may make ${callsPerSecond} calls a second`, {
        details: { callsPerSecond },
      });
    }
    allowance.calls -= 1;
  }
}

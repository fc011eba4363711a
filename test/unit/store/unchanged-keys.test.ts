/** What is told from memory about blocks just behind the head, held against all that changed. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../../../node/store/account-record.js";
import { openDatabase } from "../../../node/store/database.js";
import { StateStore } from "../../../node/store/state-store.js";
import { StoreBase } from "../../../node/store/store-base.js";
import { UnchangedKeys } from "../../../node/store/unchanged-keys.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { chance, createRandom } from "../../helpers/random.js";

const SEED = 271_120;

const slotOf = (n: number): Hash32 => bytesToHash32(Buffer.alloc(32, n));

describe("keys that have not changed", () => {
  it("are told where all changes since are known, and never of one that changed", () => {
    const random = createRandom(SEED);
    const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
    const first = 5;
    const unchanged = new UnchangedKeys(first, 12);
    const lastChange = new Map<string, number>();
    const wrong: unknown[] = [];
    let told = 0;
    for (let height = first + 1; height < 200; height += 1) {
      for (const key of keys) {
        if (!chance(random, 0.05)) continue;
        unchanged.note(key, height);
        lastChange.set(key, height);
      }
      for (let at = 0; at <= height; at += 1) {
        for (const key of keys) {
          if (!unchanged.isUnchangedSince(key, at)) continue;
          told += 1;
          if (at < first || (lastChange.get(key) ?? 0) > at) wrong.push({ key, at, height });
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(told).toBeGreaterThan(20_000);
  });
});

describe("state just behind the head", () => {
  it("is what it was, and read by no walk through versions where nothing changed", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-unchanged-"));
    const database = await openDatabase(folder);
    let walks = 0;
    const wrong: unknown[] = [];
    const few = database.few.bind(database);
    database.few = (range) => {
      walks += 1;
      return few(range);
    };
    const state = new StateStore(database, 0, await StoreBase.open(database));
    const random = createRandom(SEED);
    const slots = [1, 2, 3].map(slotOf);
    const addresses = Array.from({ length: 8 }, (_, n) => testAddress(n + 1));
    const still = testAddress(99);
    const truth: { accounts: Map<Address, AccountRecord>; storage: Map<string, Uint8Array> }[] = [
      { accounts: new Map(), storage: new Map() },
    ];
    const heads = 24;
    for (let height = 1; height <= heads; height += 1) {
      const accounts = new Map<Address, AccountRecord | undefined>();
      const storage = new Map<Address, Map<Hash32, Uint8Array>>();
      const last = truth[height - 1];
      const now = { accounts: new Map(last?.accounts), storage: new Map(last?.storage) };
      if (height === 1) {
        const balanceAtoken = 7n;
        accounts.set(still, { ...EMPTY_ACCOUNT, balanceAtoken });
        now.accounts.set(still, { ...EMPTY_ACCOUNT, balanceAtoken });
      }
      for (const address of addresses) {
        if (chance(random, 0.2)) {
          const isGone = chance(random, 0.2);
          const account = { ...EMPTY_ACCOUNT, balanceAtoken: BigInt(height) };
          accounts.set(address, isGone ? undefined : account);
          if (isGone) now.accounts.delete(address);
          else now.accounts.set(address, account);
        }
        if (chance(random, 0.2)) {
          const slot = random.pick(slots);
          const value = chance(random, 0.2) ? new Uint8Array() : Uint8Array.of(height);
          storage.set(address, new Map([[slot, value]]));
          now.storage.set(`${address}${slot}`, value);
        }
      }
      truth.push(now);
      const changes = { height, accounts, storage, codes: new Map() };
      const batch = database.batch();
      allAtOnce(state.addWrites(changes, batch.add));
      await batch.write({ durable: false });
      state.publish(changes);
      // Before, in the middle of, and behind what the caches take over.
      const steps = state.takeOver();
      for (const isTaken of [false, true]) {
        if (isTaken) while (steps.next().done !== true);
        for (let at = 0; at <= height; at += 1) {
          const { accounts: then, storage: slotsThen } = truth[at] ?? now;
          for (const address of addresses) {
            const account = await state.accountAt(address, at);
            if (account?.balanceAtoken !== then.get(address)?.balanceAtoken)
              wrong.push([address, at]);
            for (const slot of slots) {
              const found = Buffer.from(await state.storageAt(address, slot, at));
              const value = slotsThen.get(`${address}${slot}`) ?? new Uint8Array();
              if (!found.equals(value)) wrong.push([address, slot, at]);
            }
          }
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(walks).toBeGreaterThan(0);
    walks = 0;
    for (let at = 1; at < heads; at += 1) {
      expect(await state.accountAt(still, at)).toMatchObject({ balanceAtoken: 7n });
      expect(await state.storageAt(still, slotOf(9), at)).toHaveLength(0);
    }
    expect(walks).toBe(0);
    await state.close();
    await database.close();
    fs.rmSync(folder, { recursive: true });
  });
});

/**
 * Tries that are read through proofs: random changes give the root of the whole trie, also where
 * a deleted key makes the trie read a neighbour that nobody asked for.
 */
import { describe, expect, it } from "@jest/globals";
import { createMerkleProof, MerklePatriciaTrie } from "@ethereumjs/mpt";
import { Account, createAddressFromString } from "@ethereumjs/util";
import { type Address, addressToBytes } from "../../../../chain/address.js";
import { bytesToHash32, bytesToHex, type Hash32 } from "../../../../chain/hex.js";
import type { ProofQuery } from "../../../../cli/audit/audit-node.js";
import { createChainCommon } from "../../../../cli/audit/chain-rules.js";
import { ProvenState } from "../../../../cli/audit/proven-state.js";
import { createRandom } from "../../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_127);
console.log(`audit trie nodes: seed ${SEED} (CAUSEWAY_TEST_SEED)`);
const random = createRandom(SEED);
const { signal } = new AbortController();
const common = createChainCommon(6940n);
const OWNER = "0x00000000000000000000000000000000000000aa" as Address;

/** A whole trie beside the one that is read through proofs. */
async function wholeTrie(entries: Iterable<readonly [Uint8Array, Uint8Array]>) {
  const trie = new MerklePatriciaTrie({ useKeyHashing: true });
  for (const [key, value] of entries) await trie.put(key, value);
  return trie;
}

function provenOver(
  proofs: (query: ProofQuery) => Promise<{ account: Uint8Array[]; storage: Uint8Array[][] }>,
): ProvenState {
  const node = {
    proofs: (queries: readonly ProofQuery[]) => Promise.all(queries.map(proofs)),
    code: () => Promise.reject(new Error("no code")),
  };
  return new ProvenState(node, { common, signal });
}

describe("state that is read through proofs", () => {
  it("comes to the root of the whole state after accounts changed and ceased to be", async () => {
    for (let round = 0; round < 6; round++) {
      const addresses = Array.from({ length: 2 + random.integer(60) }, () => random.bytes(20));
      const account = () => new Account(BigInt(random.integer(9)), 1n + BigInt(random.integer(99)));
      const whole = await wholeTrie(addresses.map((key) => [key, account().serialize()] as const));
      const before = whole.shallowCopy(false);
      const state = provenOver(async ({ address }) => ({
        account: await createMerkleProof(before, addressToBytes(address)),
        storage: [],
      }));
      await state.startFrom(7, bytesToHash32(whole.root()));
      for (const key of [...addresses].filter(() => random.integer(3) > 0)) {
        const address = createAddressFromString(bytesToHex(key));
        if (random.integer(2) === 0) {
          await whole.del(key);
          await state.deleteAccount(address);
        } else {
          const changed = account();
          await whole.put(key, changed.serialize());
          await state.putAccount(address, changed);
        }
      }
      const root = bytesToHex(await state.getStateRoot());
      expect({ SEED, round, root }).toEqual({ SEED, round, root: bytesToHex(whole.root()) });
    }
  });

  it("comes to the root of the whole storage after slots were cleared", async () => {
    for (let round = 0; round < 6; round++) {
      const slots = Array.from({ length: 2 + random.integer(60) }, () => random.bytes(32));
      const whole = await wholeTrie(slots.map((slot) => [slot, Uint8Array.of(1)] as const));
      const before = whole.shallowCopy(false);
      const owner = new Account(1n, 1n, whole.root());
      const accounts = await wholeTrie([[addressToBytes(OWNER), owner.serialize()]]);
      const state = provenOver(async ({ address, slots: wanted }) => ({
        account: await createMerkleProof(accounts, addressToBytes(address)),
        storage: await Promise.all(
          wanted.map((slot: Hash32) =>
            createMerkleProof(before, Buffer.from(slot.slice(2), "hex")),
          ),
        ),
      }));
      await state.startFrom(7, bytesToHash32(accounts.root()));
      const address = createAddressFromString(OWNER);
      for (const slot of [...slots].filter(() => random.integer(3) > 0)) {
        await whole.del(slot);
        await state.putStorage(address, slot, new Uint8Array(0));
      }
      const { storageRoot } = (await state.getAccount(address)) ?? owner;
      expect({ SEED, round, root: bytesToHex(storageRoot) }).toEqual({
        SEED,
        round,
        root: bytesToHex(whole.root()),
      });
    }
  });

  it("is not to be had from proofs of another state", async () => {
    const other = await wholeTrie([[addressToBytes(OWNER), new Account(1n, 5n).serialize()]]);
    const state = provenOver(async ({ address }) => ({
      account: await createMerkleProof(other, addressToBytes(address)),
      storage: [],
    }));
    const root = bytesToHash32(new Uint8Array(32).fill(9));
    await expect(state.startFrom(7, root)).rejects.toMatchObject({ code: "STATE_UNPROVEN" });
  });
});

/**
 * A block is made, stored and taken over in slices between which others run; whoever looks in any
 * turn of the event loop sees the one head or the other, and nothing in between.
 */
import { afterEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import { sha256 } from "../../../chain/hashes.js";
import type { Hash32 } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { signLegacy } from "../../../chain/transaction.js";
import { ATOKEN_PER_TOKEN } from "../../../chain/units.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { validatorGenesis, type ValidatorNode } from "../../helpers/chains/validator-node.js";
import { until } from "../../helpers/until.js";

const SENDERS = 40;
const TRANSFERS_EACH = 20;

interface Account {
  readonly address: Address;
  readonly privateKey: Uint8Array;
}

function accountOf(name: string): Account {
  const privateKey = sha256(Buffer.from(name));
  return { address: privateKeyToAddress(privateKey), privateKey };
}

/** A transfer to an address that nobody else pays to. */
interface Watched {
  readonly hash: Hash32;
  readonly to: Address;
  readonly from: Address;
  readonly nonce: bigint;
}

let close: () => Promise<void> = async () => undefined;

afterEach(() => close());

describe("the head", () => {
  it("moves for state, index and pool in one turn, however large its block is", async () => {
    const faucet = accountOf("faucet");
    const { genesis, seeds } = validatorGenesis(1, { faucet: faucet.address });
    const net = new ValidatorNetwork(genesis, seeds);
    close = () => net.close();
    const node = await net.start(0);
    const sign = ({ privateKey }: Account, nonce: number, to: Address, valueAtoken: bigint) =>
      signLegacy(
        {
          chainId: genesis.evmChainId,
          nonce: BigInt(nonce),
          gasPriceAtoken: 25_000_000n,
          gasLimit: 21_000n,
          to,
          valueAtoken,
          data: new Uint8Array(0),
        },
        privateKey,
      );
    const senders = Array.from({ length: SENDERS }, (_, index) => accountOf(`sender ${index}`));
    const funding = senders.map(({ address }, nonce) =>
      sign(faucet, nonce, address, ATOKEN_PER_TOKEN),
    );
    await node.pool.submit(funding);
    await until(() => node.pool.counts().pending === 0, {
      timeoutMs: 60_000,
      what: "the senders have coins",
    });
    const plan = senders.flatMap((sender, place) =>
      Array.from({ length: TRANSFERS_EACH }, (_, nonce) => ({ sender, nonce, place })),
    );
    const recipient = (place: number, nonce: number): Address =>
      parseAddress(`0x${(0xc0_0000 + place * 100 + nonce).toString(16).padStart(40, "0")}`);
    const raws = plan.map(({ sender, nonce, place }) =>
      sign(sender, nonce, recipient(place, nonce), 7n),
    );
    const answers = await node.pool.submit(raws);
    const watched = plan.map(({ sender, nonce, place }, index): Watched => {
      const hash = answers[index];
      if (typeof hash !== "string") throw new Error(`refused: ${String(hash)}`);
      const { address: from } = sender;
      return { hash, to: recipient(place, nonce), from, nonce: BigInt(nonce) };
    });
    const seen = await watchUntilMined(node, watched);
    expect(seen.faults).toEqual([]);
    // Else nobody looked while a block was made.
    expect(seen.turns).toBeGreaterThan(100);
    expect(node.pool.counts()).toEqual({ pending: 0, queued: 0 });
    expect(node.halts).toEqual([]);
  });
});

/** Looks in every turn of the event loop until all are mined. */
async function watchUntilMined(node: ValidatorNode, watched: readonly Watched[]) {
  const faults: string[] = [];
  let turns = 0;
  const look = (): number => {
    let minedCount = 0;
    for (const { hash, to, from, nonce } of watched) {
      const isMined = node.view.locate(hash) !== undefined;
      const isPending = node.pool.get(hash) !== undefined;
      const isPaid = node.stores.state.account(to)?.balanceAtoken === 7n;
      const isSpent = (node.stores.state.account(from)?.nonce ?? 0n) > nonce;
      const status = node.pool.status(hash).status;
      const isWhole = isPaid === isMined && isSpent === isMined && isPending !== isMined;
      const isSaid = status === (isMined ? "included" : "pending");
      if (!isWhole || !isSaid) {
        const view = { isMined, isPending, isPaid, isSpent, status };
        faults.push(`${hash} at ${node.height}: ${JSON.stringify(view)}`);
      }
      if (isMined) minedCount += 1;
    }
    return minedCount;
  };
  await until(
    async () => {
      for (let turn = 0; turn < 50; turn += 1) {
        turns += 1;
        if (look() === watched.length || faults.length > 3) return true;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return false;
    },
    { timeoutMs: 60_000, what: "all transfers are mined" },
  );
  // The pool may still be letting go of the last block.
  for (let turn = 0; turn < 200; turn += 1) {
    look();
    turns += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { faults: faults.slice(0, 4), turns };
}

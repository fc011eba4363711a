/** The lane over the chain's own pool, estimates and EVM: what one customer's contracts can do. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, bytesToAddress } from "../../../../chain/address.js";
import type { Hex } from "../../../../chain/hex.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import type { Genesis, GenesisAccount } from "../../../../node/settings/genesis.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { testGenesis } from "../../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../../helpers/chains/served-chain.js";
import { freshAddress, House, TOKEN, WALLET } from "../../../helpers/exchange/house.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";

/** Counts down from a number: 26 gas for each step, then stops. */
function countdown(steps: bigint): Hex {
  return `0x62${steps.toString(16).padStart(6, "0")}5b600190038060045700`;
}

/** Stops where the gas price is zero, and burns all gas where it is not. */
const BRANCHES_ON_PRICE: Hex = "0x3a15600657fe5b00";

let house: House;
let served: ServedChain;
let rpc: JsonRpcClient;
let context: LaneContext;
let limit: bigint;
/** What the lane sent since the last block. */
let sent: Hex[] = [];

const place = (number: number): Address => bytesToAddress(Buffer.alloc(20, number));

/** Contracts by address: near the limit, above it with its margin, far below, and a trap. */
function contractsOf(limitGas: bigint): ReadonlyMap<Address, Hex> {
  const stepsFor = (share: bigint) => (limitGas * share) / 100n / 26n;
  return new Map([
    [place(0xc1), countdown(stepsFor(98n))],
    [place(0xc2), countdown(stepsFor(85n))],
    [place(0xc3), countdown(stepsFor(1n))],
    [place(0xc4), BRANCHES_ON_PRICE],
  ]);
}

beforeAll(async () => {
  house = await House.withAlice(500n * TOKEN);
  const plain = testGenesis(WALLET);
  limit = plain.params.maxTransactionGas;
  const codes = [...contractsOf(limit)].map(([address, code]): [Address, GenesisAccount] => [
    address,
    { balanceAtoken: 0n, code, storage: new Map() },
  ]);
  const genesis: Genesis = { ...plain, alloc: new Map([...plain.alloc, ...codes]) };
  served = await ServedChain.open(genesis);
  rpc = createPatientClient(served.url);
  const genesisHash = served.chain.view.genesis().block.hash;
  const node = createPatientNode(rpc, { chainId: genesis.evmChainId, genesisHash });
  const base = house.context({ gas: { ...house.context().settings.gas, limitMax: 40_000_000n } });
  context = {
    ...base,
    node: {
      ...node,
      send: (raws, options) => {
        sent.push(...raws);
        return node.send(raws, options);
      },
    },
  };
});

afterAll(async () => {
  rpc.close();
  await served.close();
  await house.close();
});

const accept = (destination: Address) =>
  house.accept({ destination, destinationText: destination });

const read = (all: readonly Withdrawal[]) => Promise.all(all.map(({ id }) => house.read(id)));

/** Whether any of them has not come to its end. */
async function areWaiting(
  asked: ReadonlyMap<number, readonly Withdrawal[]>,
  plain: readonly Withdrawal[],
): Promise<boolean> {
  const all = await read([...plain, ...[...asked.values()].flat()]);
  return all.some(({ status }) => status !== "settled" && status !== "failed");
}

describe("payouts to contracts on this chain", () => {
  it("never keep the payouts of others waiting, whatever gas they want", async () => {
    const lane = new Lane(context, "worker");
    const asked = new Map<number, Withdrawal[]>();
    const plain: Withdrawal[] = [];
    for (let n = 0; n < 4; n++) {
      for (const code of [0xc1, 0xc2, 0xc3, 0xc4]) {
        asked.set(code, [...(asked.get(code) ?? []), await accept(place(code))]);
      }
      plain.push(await accept(freshAddress()));
    }
    await lane.runRound(house.signal);
    // All plain ones have the first nonces, and one block takes them.
    expect((await read(plain)).map(({ nonce }) => nonce)).toEqual([0n, 1n, 2n, 3n]);
    // Code that is not estimated in time is asked about again: a slow machine takes more rounds.
    for (let round = 0; round < 60 && (await areWaiting(asked, plain)); round++) {
      await served.mine(sent);
      sent = [];
      house.clock.ms += 3_000;
      await house.database.query(`UPDATE withdrawal SET next_try_at = now()
        WHERE status = 'accepted'`);
      await lane.runRound(house.signal);
    }
    for (const { status } of await read(plain)) expect(status).toBe("settled");
    for (const code of [0xc1, 0xc2]) {
      for (const { status, nonce, reason } of await read(asked.get(code) ?? [])) {
        expect({ code, status, nonce }).toEqual({ code, status: "failed", nonce: undefined });
        expect(reason).toMatch(/gas required exceeds allowance|out of compute/);
      }
    }
    for (const { status } of await read(asked.get(0xc3) ?? [])) expect(status).toBe("settled");
    // At the price that is signed it burns all gas, and the estimate says so.
    for (const { status, nonce } of await read(asked.get(0xc4) ?? [])) {
      expect({ status, nonce }).toEqual({ status: "failed", nonce: undefined });
    }
    expect(lane.status()).toMatchObject({ blockedReason: undefined, openSlots: 0 });
    expect((await house.balance("alice")).held).toBe(0n);
  });

  it("are given no more gas than the node says that a transaction may name", async () => {
    const view = await context.node.view(WALLET, { signal: house.signal });
    expect(view.maxTransactionGas).toBe(limit);
  });
});

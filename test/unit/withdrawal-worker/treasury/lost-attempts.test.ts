/** What is signed on the nonce of a sweep of coins whose block a chain has lost. */
import { expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex, ZERO_HASH } from "../../../../chain/hex.js";
import { buildAndSign } from "../../../../chain/signing/legacy-transaction.js";
import type { SweepAttempt } from "../../../../ledger/treasury/sweep-attempt-rows.js";
import type { Sweep } from "../../../../ledger/treasury/sweeps.js";
import { lostAttempt } from "../../../../withdrawal-worker/treasury/sweep-attempts.js";
import type { SweepIntent } from "../../../../withdrawal-worker/treasury/sweep-signer.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";

type Context = Parameters<typeof lostAttempt>[0];
type Seen = Parameters<typeof lostAttempt>[1];
type Round = Parameters<typeof lostAttempt>[2];

const KEY = keccak256(Buffer.from("a deposit address"));
const FORMER = testAddress(0xf0);
const LATER = testAddress(0x1a);
const FEE = 21_000n;
const COINS = 1_000_000n;
const FEW = 1_000n;
const common = { chainId: 1n, nonce: 0n, gasPriceAtoken: 1n, gasLimit: FEE };

/** The n-th one that is stored. */
function stored(n: number, wallet: Address, valueAtoken: bigint): SweepAttempt {
  const intent = { ...common, to: wallet, valueAtoken, data: new Uint8Array(0) };
  const raw = bytesToHex(buildAndSign(intent, KEY).raw);
  return { n, wallet, raw, hash: ZERO_HASH, gasPriceAtoken: 1n, ageMs: 0 };
}

/** @returns where it goes and how much it brings; undefined where nothing is signed */
function signedFor(facts: {
  readonly attempts: readonly SweepAttempt[];
  /** Beside the fee. */
  readonly coinsAtoken: bigint;
  readonly wallets: readonly Address[];
  readonly isPooled?: boolean;
  /** As the ledger has it: a block that is not lost says "settled". */
  readonly state?: Sweep["state"];
}): readonly [Address, bigint] | undefined {
  const { attempts, coinsAtoken, wallets, isPooled = false, state = "sent" } = facts;
  const asked: SweepIntent[] = [];
  const signer: Pick<Context["signer"], "sign"> = {
    sign(intent) {
      asked.push(intent);
      return { kind: "refused", reason: "nothing more is asked here" };
    },
  };
  const settings = { gas: { priceCapAtoken: 1n } };
  const gas = { nonce: 0n, gasPriceAtoken: 1n };
  const sweep = { asset: "TOKEN", amountUnits: COINS, gasLimit: FEE, gas, state, attempts };
  const balanceAtoken = coinsAtoken + FEE;
  const seen = { sweep, state: { balanceAtoken, nonce: 0n, pendingNonce: isPooled ? 1n : 0n } };
  const view = { suggestedPriceAtoken: 1n };
  const rules = { topUpMaxAtoken: 0n, assets: new Map() };
  lostAttempt(
    { signer, settings, chainId: 1n, log: silentLog } as unknown as Context,
    seen as unknown as Seen,
    { rules, view, wallets, isAsBooked: true } as unknown as Round,
  );
  const [intent] = asked;
  return intent === undefined ? undefined : [intent.wallet, intent.valueAtoken];
}

const meant = stored(0, FORMER, COINS);

it.each([
  ["nothing where stored bytes will do", [meant], COINS, [LATER, FORMER], {}, undefined],
  ["one to a wallet that takes coins", [meant], COINS, [LATER], {}, [LATER, COINS]],
  ["that also beside a pool", [meant], COINS, [LATER], { isPooled: true }, [LATER, COINS]],
  ["of what is there where that is less", [meant], FEW, [LATER], {}, [LATER, FEW]],
  ["nothing where no wallet takes coins", [meant], COINS, [], {}, undefined],
  [
    "nothing for one that a node is behind",
    [meant],
    COINS,
    [LATER],
    { state: "settled" },
    undefined,
  ],
  ["less to its own wallet where coins were lost", [meant], FEW, [FORMER], {}, [FORMER, FEW]],
  ["no less where a pool has it", [meant], FEW, [FORMER], { isPooled: true }, undefined],
  [
    "less where what can be paid goes to no wallet that takes coins",
    [meant, stored(1, FORMER, FEW), stored(2, LATER, COINS)],
    FEW,
    [LATER],
    {},
    [LATER, FEW],
  ],
] as const)("is %s", (_what, attempts, coinsAtoken, wallets, more, signed) => {
  expect(signedFor({ attempts, coinsAtoken, wallets, ...more })).toEqual(signed);
});

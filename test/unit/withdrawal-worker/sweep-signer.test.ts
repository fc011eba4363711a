/** The rules of whoever signs for deposit addresses, each broken by itself: nothing else refuses for it. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import {
  type AddressDerivation,
  createAddressDerivation,
} from "../../../chain/derivation/address-derivation.js";
import { type DepositKeys, readDepositSeed } from "../../../chain/derivation/deposit-keys.js";
import { present } from "../../../chain/errors.js";
import { encodeTransfer } from "../../../chain/evm/erc20.js";
import { hexToBytes } from "../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import { KillSwitchFileError } from "../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import {
  type SweepIntent,
  type SweepRules,
  SweepSigner,
} from "../../../withdrawal-worker/treasury/sweep-signer.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const [WALLET, COLD, CONTRACT, OTHER_CONTRACT] = [
  testAddress(0x407),
  testAddress(0xc01d),
  testAddress(0x601d),
  testAddress(0x5117e4),
];
const PRICE = 25_000_000n;
const GAS = 21_000n;
const TOKEN_GAS = 60_000n;

/** Exactly what a sweep of a token costs: one atoken more is too much. */
const FEE_MAX = TOKEN_GAS * PRICE;

const asset = {
  sweepMinimumUnits: 1n,
  sweepFeeMaxAtoken: FEE_MAX,
  coldAddress: COLD,
  band: undefined,
};
const policyOf = (assets: readonly string[]) =>
  hashPolicy({
    ...PERMISSIVE_POLICY,
    treasury: {
      topUpMaxAtoken: 0n,
      assets: new Map(assets.map((symbol) => [symbol, asset])),
    },
  });

const RULES: SweepRules = {
  chainId: 6940n,
  // Far above the price: it is not the cap that refuses a fee.
  limits: { gasPriceCapAtoken: 1_000n * PRICE, gasLimitMax: 1_000_000n },
  readPolicy: () => policyOf(["TOKEN", "GOLD", "UNLISTED"]),
  readKillSwitch: () => SWITCH_UNTOUCHED,
  wallets: () => [WALLET],
  contractOf: (symbol) => (symbol === "GOLD" ? CONTRACT : undefined),
};

let keys: DepositKeys;
let derivation: AddressDerivation;

beforeAll(async () => {
  keys = present(await readDepositSeed("5e".repeat(32)), "the seed");
  derivation = createAddressDerivation(keys.xpub);
});

const signer = (over: Partial<SweepRules> = {}) =>
  new SweepSigner(keys, derivation, { ...RULES, ...over });

/** Coins of the address of index 0. */
function coins(over: Partial<SweepIntent> = {}): SweepIntent {
  return {
    address: derivation.addressAt(0),
    index: 0,
    asset: "TOKEN",
    wallet: WALLET,
    amountUnits: 1_000n,
    chainId: 6940n,
    nonce: 0n,
    to: WALLET,
    valueAtoken: 1_000n,
    data: new Uint8Array(0),
    gasLimit: GAS,
    gasPriceAtoken: PRICE,
    ...over,
  };
}

const transfer = (to = WALLET, amountUnits = 1_000n) =>
  hexToBytes(encodeTransfer({ to, amountUnits }));

/** Units of a token of the same address. */
function units(over: Partial<SweepIntent> = {}): SweepIntent {
  const moved = { asset: "GOLD", to: CONTRACT, valueAtoken: 0n, data: transfer() };
  return coins({ ...moved, gasLimit: TOKEN_GAS, ...over });
}

/** The same words as a transfer's, behind another selector. */
function calling(selector: string, ...words: readonly string[]): Uint8Array {
  return hexToBytes(`0x${selector}${words.map((word) => word.padStart(64, "0")).join("")}`);
}
const wallet = WALLET.slice(2);
const amount = 1_000n.toString(16);

const refused = (reason: string) => ({ kind: "refused", reason: expect.stringContaining(reason) });

it.each([
  ["coins", () => coins()],
  ["units of a token", () => units()],
])("signs %s for a hot wallet of the home, by the key of the address", (_, intent) => {
  const signed = signer().sign(intent());
  if (signed.kind !== "signed") throw new Error(signed.reason);
  const tx = decodeTransaction(hexToBytes(signed.raw));
  expect(recoverSender(tx)).toBe(derivation.addressAt(0));
  const { to, valueAtoken, data, gasPriceAtoken } = intent();
  expect(tx).toMatchObject({ to, valueAtoken, maxFeePerGasAtoken: gasPriceAtoken });
  expect(Buffer.from(tx.data).equals(data)).toBe(true);
});

const NOT_A_SWEEP = "it does something else than a sweep";

describe("refuses", () => {
  it.each<readonly [string, () => SweepIntent, string]>([
    ["coins for a stranger", () => coins({ to: COLD }), NOT_A_SWEEP],
    ["coins with calldata", () => coins({ data: Uint8Array.of(1) }), NOT_A_SWEEP],
    ["no coins at all", () => coins({ valueAtoken: 0n }), NOT_A_SWEEP],
    ["units for a stranger", () => units({ data: transfer(COLD) }), NOT_A_SWEEP],
    ["units more than it says", () => units({ data: transfer(WALLET, 1_001n) }), NOT_A_SWEEP],
    ["coins beside units", () => units({ valueAtoken: 1n }), NOT_A_SWEEP],
    ["a call of another contract", () => units({ to: OTHER_CONTRACT }), NOT_A_SWEEP],
    ["a call of no contract", () => units({ to: WALLET }), NOT_A_SWEEP],
    ["an allowance", () => units({ data: calling("095ea7b3", wallet, amount) }), NOT_A_SWEEP],
    [
      "units of somebody else",
      () => units({ data: calling("23b872dd", COLD.slice(2), wallet, amount) }),
      NOT_A_SWEEP,
    ],
    [
      "bytes behind a transfer",
      () => units({ data: Buffer.concat([transfer(), Uint8Array.of(0)]) }),
      NOT_A_SWEEP,
    ],
    ["a token that the home does not list", () => units({ asset: "UNLISTED" }), "UNLISTED"],
    [
      "an asset that the policy does not name",
      () => coins({ asset: "SILVER" }),
      "the policy's treasury does not name SILVER",
    ],
    [
      "a wallet that is not of this home",
      () => coins({ to: COLD, wallet: COLD }),
      "it goes to no wallet of this home",
    ],
    ["another chain", () => coins({ chainId: 6941n }), "it is for another chain"],
    [
      "a fee of one atoken too much",
      // One gas at that price.
      () => coins({ gasLimit: 1n, gasPriceAtoken: FEE_MAX + 1n }),
      "its fee is above the policy's",
    ],
    [
      "the address of another key",
      () => coins({ address: derivation.addressAt(1) }),
      "the seed has another key there",
    ],
  ])("%s", (_, intent, reason) => {
    // No cap of the price, so that each rule stands alone.
    const limits = { ...RULES.limits, gasPriceCapAtoken: 2n * FEE_MAX };
    expect(signer({ limits }).sign(intent())).toEqual(refused(reason));
  });

  it("a price above the cap, although the fee is the policy's", () => {
    const intent = coins({ gasLimit: 1n, gasPriceAtoken: RULES.limits.gasPriceCapAtoken + 1n });
    expect(signer().sign(intent)).toEqual(refused("(gasPriceCap)"));
  });

  it.each(["stop-sign", "stop-broadcast"] as const)("everything at %s", (level) => {
    const stopped = signer({
      readKillSwitch: () => ({ ...SWITCH_UNTOUCHED, level, reason: "drill" }),
    });
    for (const intent of [coins(), units()]) {
      expect(stopped.sign(intent)).toEqual(refused(`kill switch ${level}: drill`));
    }
  });

  it("everything while the switch cannot be read", () => {
    const readKillSwitch = () => {
      throw new KillSwitchFileError("KILL_SWITCH_UNREADABLE", "the switch cannot be read");
    };
    expect(signer({ readKillSwitch }).sign(coins())).toEqual(refused("the switch cannot be read"));
  });
});

it("signs while only new requests are stopped", () => {
  const readKillSwitch = () => ({ ...SWITCH_UNTOUCHED, level: "stop-new" as const });
  expect(signer({ readKillSwitch }).sign(coins()).kind).toBe("signed");
});

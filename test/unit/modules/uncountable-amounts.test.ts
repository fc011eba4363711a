/** Amounts that no balance can have: their messages fail, and their blocks can be read all the same. */
import { describe, expect, it } from "@jest/globals";
import { parseBech32, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import type { CosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { MAX_WORD } from "../../../chain/hex.js";
import { cosmosItem, readCosmosTransaction } from "../../../chain/records/cosmos-items.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import type { CosmJsMessage } from "../../helpers/cosmos/cosmjs.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { read, sender } from "../chain/cosmos/signed.js";

const from = parseBech32(sender);
const tenth = "100000000000000000";

const delegation = (amount: bigint): CosmJsMessage => ({
  typeUrl: "/cosmos.staking.v1beta1.MsgDelegate",
  value: {
    delegatorAddress: sender,
    validatorAddress: toBech32(accountAt(0), VALIDATOR_PREFIX),
    amount: { denom: "atoken", amount: amount.toString() },
  },
});
const registration = (amount: bigint): CosmJsMessage => ({
  typeUrl: "/cosmos.staking.v1beta1.MsgCreateValidator",
  value: {
    description: { moniker: "x", identity: "", website: "", securityContact: "", details: "" },
    commission: { rate: tenth, maxRate: tenth, maxChangeRate: tenth },
    minSelfDelegation: "1",
    delegatorAddress: "",
    validatorAddress: toBech32(from, VALIDATOR_PREFIX),
    pubkey: {
      typeUrl: "/cosmos.crypto.ed25519.PubKey",
      value: [10, 32, ...Buffer.alloc(32, 9)],
    },
    value: { denom: "atoken", amount: amount.toString() },
  },
});

/** The transaction as a block has it. */
function mined(message: CosmJsMessage): MinedCosmosTransaction {
  const genesis = stakedGenesis([100]);
  const chain = new ModuleChain(genesis);
  chain.mint(from, 10n ** 18n);
  const tx: CosmosTransaction = read({ messages: [message], gas: 400_000 });
  const { state, timeMs } = chain;
  const place = { ...genesis.params, state, timeMs, height: 1 } as never;
  const outcome = executeCosmosTransaction({ tx, from }, place);
  if (!outcome.included) throw new Error(outcome.fault.log);
  return { tx, from, index: 0, result: outcome.result, changes: outcome.changes };
}

const readAgain = (transaction: MinedCosmosTransaction) =>
  readRlp(encodeRlp(cosmosItem(transaction)), readCosmosTransaction);

describe("a message about more than all that can be counted", () => {
  it.each([
    ["a delegation of 2^256", delegation(MAX_WORD + 1n)],
    ["a delegation of 78 nines", delegation(10n ** 78n - 1n)],
    ["a validator's own stake of 2^256", registration(MAX_WORD + 1n)],
  ])("fails in a block that can be read: %s", (_name, message) => {
    const transaction = mined(message);
    expect([transaction.result.code, transaction.result.codespace]).toEqual([5, "sdk"]);
    const { changes } = readAgain(transaction);
    expect(changes.map(({ reason }) => reason)).not.toContain("DELEGATE");
    expect(changes).toEqual(transaction.changes);
  });

  it("is shown with its coins where they could be had", () => {
    const { changes } = readAgain(mined(delegation(MAX_WORD)));
    expect(changes.filter(({ reason }) => reason === "DELEGATE")).toMatchObject([
      { from, amountAtoken: MAX_WORD, effective: false },
    ]);
  });

  it("is read without its coins where an older release has recorded them", () => {
    const transaction = mined(delegation(MAX_WORD));
    const changes = transaction.changes.map((change) =>
      change.reason === "DELEGATE" ? { ...change, amountAtoken: MAX_WORD + 1n } : change,
    );
    expect(readAgain({ ...transaction, changes }).changes).toEqual(
      transaction.changes.filter(({ reason }) => reason !== "DELEGATE"),
    );
  });
});

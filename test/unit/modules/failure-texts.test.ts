/** What each move of a failed Cosmos transaction says of the failure, whose words its sender chooses. */
import { describe, expect, it } from "@jest/globals";
import { toBech32 } from "../../../chain/address.js";
import { type BalanceChange, changeError } from "../../../chain/balance-change.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { present } from "../../../chain/errors.js";
import { changeItem, readChange } from "../../../chain/records/block-items.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { changeJson } from "../../../node/rpc/evm/json/journal-json.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const ALICE = accountAt(20);
const from = toBech32(ALICE);
const coins = (amount: number) => [{ denom: "atoken", amount: `${amount}` }];

const send = (amount: number): [string, ProtoMessage] => [
  "bank.v1beta1.MsgSend",
  { from_address: from, to_address: toBech32(accountAt(3)), amount: coins(amount) },
];
const sendMany: [string, ProtoMessage] = [
  "bank.v1beta1.MsgMultiSend",
  {
    inputs: [{ address: from, coins: coins(10) }],
    outputs: [3, 4, 5, 6, 7].map((index) => ({
      address: toBech32(accountAt(index)),
      coins: coins(2),
    })),
  },
];
const propose = (title: string, metadataTitle: string): [string, ProtoMessage] => [
  "gov.v1.MsgSubmitProposal",
  {
    messages: [],
    initial_deposit: [],
    proposer: from,
    title,
    summary: "s",
    metadata: JSON.stringify({ title: metadataTitle }),
    expedited: false,
  },
];

/** Result and changes of a transaction with these messages. */
function outcomeOf(...messages: readonly (readonly [string, ProtoMessage])[]) {
  const chain = new ModuleChain(stakedGenesis([100]));
  chain.mint(ALICE, 1_000n);
  const tx = {
    raw: new Uint8Array(300),
    messages: messages.map(([name, message]) => {
      const typeUrl = `/cosmos.${name}`;
      return { typeUrl, schema: present(schemaOf(typeUrl), name), message };
    }),
    gasLimit: 5_000_000n,
    feeAtoken: 0n,
    fee: [],
    nonce: 0n,
    signature: new Uint8Array(64),
    memo: "",
    timeoutHeight: 0n,
    timeoutTimestamp: undefined,
  } as never;
  const { state, timeMs, genesis } = chain;
  const place = { ...genesis.params, state, timeMs, height: 1, isSimulated: true };
  const outcome = executeCosmosTransaction({ tx, from: ALICE }, place);
  if (!outcome.included) throw new Error(outcome.fault.log);
  return outcome;
}

/** Bytes of a change's error in JSON. */
function errorBytes(change: BalanceChange): number {
  const { error } = JSON.parse(changeJson(change)) as { readonly error: string | null };
  return Buffer.byteLength(JSON.stringify(error));
}

describe("the error of a move that was undone", () => {
  it("is short, whatever words the sender chose, and whole in the result", () => {
    const title = "\u0001".repeat(255);
    const { result, changes } = outcomeOf(send(1), sendMany, propose(title, "a".repeat(240)));
    expect(result.log).toContain(title);
    expect(changes.map(({ effective }) => effective)).toEqual(
      Array.from({ length: 6 }, () => false),
    );
    for (const change of changes) {
      expect([change.reason, errorBytes(change) <= 200]).toEqual([change.reason, true]);
      expect(change.error).toMatch(/^failed to execute message; message index: 2: metadata title/);
    }
  });

  it("is the whole text where it is an ordinary one", () => {
    const { result, changes } = outcomeOf(send(1), send(2_000));
    expect(result.log).toMatch(/index: 1: spendable balance 999atoken .*: insufficient funds$/);
    expect(changes.map(({ error }) => error)).toEqual([result.log, result.log]);
  });

  it("is one byte of JSON for each character", () => {
    const error = changeError(`"é\\😀\u2028\u0000${"x".repeat(200)}`);
    expect(error).toBe(`'??????${"x".repeat(153)}`);
    expect(Buffer.byteLength(JSON.stringify(error))).toBe(162);
    expect(changeError(error)).toBe(error);
  });

  it("is read as newer releases store it, where an older one has stored all of it", () => {
    const [change] = outcomeOf(send(1), propose("\u0001".repeat(255), "a")).changes;
    const stored = { ...present(change, "a change"), error: `"${"\u0001".repeat(600)}` };
    const read = readRlp(encodeRlp(changeItem(stored)), readChange);
    expect(read).toEqual({ ...stored, error: changeError(stored.error) });
  });
});

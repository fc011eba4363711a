/** Where no message pays: accounts of the system, and precompiled contracts, which give nothing back. */
import { describe, expect, it } from "@jest/globals";
import { type Address, toBech32 } from "../../../chain/address.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { present } from "../../../chain/errors.js";
import { PRECOMPILE_ADDRESSES } from "../../../chain/evm/precompiles.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const ALICE = accountAt(20);
const from = toBech32(ALICE);
const coins = [{ denom: "atoken", amount: "7" }];

function messagesTo(address: Address): readonly (readonly [string, ProtoMessage])[] {
  const to = toBech32(address);
  return [
    ["bank.v1beta1.MsgSend", { from_address: from, to_address: to, amount: coins }],
    [
      "bank.v1beta1.MsgMultiSend",
      { inputs: [{ address: from, coins }], outputs: [{ address: to, coins }] },
    ],
    [
      "distribution.v1beta1.MsgSetWithdrawAddress",
      { delegator_address: from, withdraw_address: to },
    ],
  ];
}

/** Code of a message in a block of a chain of that version. */
function codeOn(version: 1 | 2, name: string, message: ProtoMessage): number {
  const { appVersion: _newest, ...first } = stakedGenesis([100]);
  const chain = new ModuleChain({ ...first, appVersion: version });
  chain.mint(ALICE, 100n);
  const typeUrl = `/cosmos.${name}`;
  const tx = {
    raw: new Uint8Array(300),
    messages: [{ typeUrl, schema: present(schemaOf(typeUrl), name), message }],
    gasLimit: 1_000_000n,
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
  const code = outcome.included ? outcome.result.code : outcome.fault.code;
  expect(chain.balance(ALICE) === 100n).toBe(code !== 0 || name.includes("Withdraw"));
  return code;
}

describe("coins that nobody could get back", () => {
  it.each([...new Set([...PRECOMPILE_ADDRESSES, ...Object.values(MODULE_ACCOUNTS)])])(
    "are not sent to %s by any message",
    (address) => {
      for (const [name, message] of messagesTo(address)) {
        expect([name, codeOn(2, name, message)]).toEqual([name, 4]);
      }
    },
  );

  it("are sent to an ordinary account by all these messages", () => {
    for (const [name, message] of messagesTo(accountAt(3))) {
      expect([name, codeOn(2, name, message)]).toEqual([name, 0]);
    }
  });

  it("go to precompiled contracts as ever by version 1 of the rules", () => {
    const address = "0x0000000000000000000000000000000000000400" as Address;
    for (const [name, message] of messagesTo(address)) {
      expect([name, codeOn(1, name, message)]).toEqual([name, 0]);
    }
  });
});

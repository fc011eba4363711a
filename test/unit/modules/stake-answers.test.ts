/** What messages of stake answer is what happened. */
import { expect, it } from "@jest/globals";
import { toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { ProtoReader } from "../../../chain/protobuf/wire.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { present } from "../../../chain/errors.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { delegate, slashValidator, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const [GUILTY, PERSON] = [accountAt(0), accountAt(9)];

it("an unbonding answers with what leaves, not with what was asked for", () => {
  const chain = new ModuleChain(stakedGenesis([100, 50]));
  chain.mint(PERSON, 1_000n);
  chain.run((context) => {
    const validator = validatorOf(context, GUILTY);
    delegate(context, PERSON, validator, 1_000n);
    const fault = { infractionHeight: 0, stakeAtoken: validator.tokens };
    slashValidator(context, validator, fault, 10n ** 17n);
  });
  const typeUrl = "/cosmos.staking.v1beta1.MsgUndelegate";
  const schema = present(schemaOf(typeUrl), typeUrl);
  // One atoken more than it is worth, which rounding takes: all of it leaves.
  const message = {
    delegator_address: toBech32(PERSON),
    validator_address: toBech32(GUILTY, VALIDATOR_PREFIX),
    amount: { denom: "atoken", amount: "901" },
  };
  let answer = new Uint8Array(0);
  const failure = chain.run((context) => {
    const handler = present(handlerOf({ typeUrl, schema, message }), typeUrl);
    const more = { signer: PERSON, isBlocked: () => false, useGas: () => undefined };
    answer = Uint8Array.from(handler.run(message, { ...context, ...more }));
  });
  expect(failure).toBeUndefined();
  const [entry] = new Delegations(chain.state).entriesOf(PERSON);
  expect(entry?.amountAtoken).toBe(900n);
  const coin = new ProtoReader(new ProtoReader(answer, [1, 2]).bytes(2), [1, 2]);
  expect(Buffer.from(coin.bytes(2)).toString()).toBe("900");
});

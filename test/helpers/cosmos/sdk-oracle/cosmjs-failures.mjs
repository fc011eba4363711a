/**
 * What a chain makes of messages that fail in a block: prints `{ failures }` with code, codespace
 * and log of each. The account has coins, no stake, and nobody has made a proposal of the number
 * that is asked for. The answers of a node of cosmos/evm are in
 * `test/fixtures/rpc/sdk-failures.json`.
 */
import { MsgFundCommunityPool } from "cosmjs-types/cosmos/distribution/v1beta1/tx";
import { MsgCancelProposal } from "cosmjs-types/cosmos/gov/v1/tx";
import { MsgUnjail } from "cosmjs-types/cosmos/slashing/v1beta1/tx";
import { connect, print, readInput } from "./cosmjs-wallet.mjs";

const input = await readInput();
const { operator, nobody, nobodyOperator, blocked } = input;
const { address, ownOperator, client, coin, fee, refusals, refused } = await connect(input);
for (const type of [MsgFundCommunityPool, MsgCancelProposal, MsgUnjail]) {
  client.registry.register(type.typeUrl, type);
}
const paid = { ...fee, gas: "500000" };
const message = (typeUrl, value) => ({ typeUrl, value });
const staking = "/cosmos.staking.v1beta1";
const distribution = "/cosmos.distribution.v1beta1";
const send = (toAddress, amount) =>
  message("/cosmos.bank.v1beta1.MsgSend", { fromAddress: address, toAddress, amount });
const ofStake = (name) => (validatorAddress, amount) =>
  message(`${staking}.${name}`, { delegatorAddress: address, validatorAddress, amount });
const delegate = ofStake("MsgDelegate");
const undelegate = ofStake("MsgUndelegate");
const redelegate = (validatorSrcAddress, validatorDstAddress, amount) =>
  message(`${staking}.MsgBeginRedelegate`, {
    delegatorAddress: address,
    validatorSrcAddress,
    validatorDstAddress,
    amount,
  });
const cancel = (validatorAddress, amount, creationHeight) =>
  message(`${staking}.MsgCancelUnbondingDelegation`, {
    delegatorAddress: address,
    validatorAddress,
    amount,
    creationHeight,
  });
const withdraw = (validatorAddress) =>
  message(`${distribution}.MsgWithdrawDelegatorReward`, {
    delegatorAddress: address,
    validatorAddress,
  });
const commission = (validatorAddress) =>
  message(`${distribution}.MsgWithdrawValidatorCommission`, { validatorAddress });
const setWithdraw = (withdrawAddress) =>
  message(`${distribution}.MsgSetWithdrawAddress`, { delegatorAddress: address, withdrawAddress });
const fund = (amount) =>
  message(`${distribution}.MsgFundCommunityPool`, { depositor: address, amount });
const vote = (proposalId, option) =>
  message("/cosmos.gov.v1.MsgVote", { proposalId, voter: address, option, metadata: "" });
const weightedVote = (options) =>
  message("/cosmos.gov.v1.MsgVoteWeighted", {
    proposalId: 999n,
    voter: address,
    options,
    metadata: "",
  });
const deposit = (amount) =>
  message("/cosmos.gov.v1.MsgDeposit", { proposalId: 999n, depositor: address, amount });
const submit = (changed) =>
  message("/cosmos.gov.v1.MsgSubmitProposal", {
    messages: [],
    initialDeposit: [coin(1)],
    proposer: address,
    metadata: "words",
    title: "Words",
    summary: "Nothing else",
    expedited: false,
    ...changed,
  });

/** Messages by what is wrong with them, in the order in which they are sent. */
const CASES = [
  ["coins that nobody has", send(nobody, [coin(1, "nothing")])],
  ["no coins", send(nobody, [])],
  ["coins of nothing", send(nobody, [coin(0)])],
  ["no address", send("nonsense", [coin(1)])],
  ["blocked account", send(blocked, [coin(1)])],
  ["delegation to nobody", delegate(nobodyOperator, coin(1))],
  ["delegation to nonsense", delegate("nonsense", coin(1))],
  ["delegation of another coin", delegate(operator, coin(1, "nothing"))],
  ["delegation of another coin to nobody", delegate(nobodyOperator, coin(1, "nothing"))],
  ["delegation of nothing", delegate(operator, coin(0))],
  ["delegation of nothing to nobody", delegate(nobodyOperator, coin(0))],
  ["delegation above the balance", delegate(operator, coin(10n ** 40n))],
  ["undelegation without delegation", undelegate(operator, coin(1))],
  ["undelegation from nobody", undelegate(nobodyOperator, coin(1))],
  ["undelegation of nothing", undelegate(operator, coin(0))],
  ["undelegation of another coin without delegation", undelegate(operator, coin(1, "nothing"))],
  ["redelegation to the same without delegation", redelegate(operator, operator, coin(1))],
  ["redelegation to nobody without delegation", redelegate(operator, nobodyOperator, coin(1))],
  ["redelegation from nobody", redelegate(nobodyOperator, operator, coin(1))],
  ["redelegation of nothing", redelegate(operator, operator, coin(0))],
  ["cancelling without unbonding", cancel(operator, coin(1), 5n)],
  ["cancelling of another coin", cancel(operator, coin(1, "nothing"), 5n)],
  ["cancelling of nothing", cancel(operator, coin(0), 5n)],
  ["cancelling at no height", cancel(operator, coin(1), 0n)],
  ["cancelling with nobody", cancel(nobodyOperator, coin(1), 5n)],
  ["reward without delegation", withdraw(operator)],
  ["reward of nobody", withdraw(nobodyOperator)],
  ["commission of nobody", commission(ownOperator)],
  ["withdraw address of the chain", setWithdraw(blocked)],
  ["withdraw address of nonsense", setWithdraw("nonsense")],
  ["another coin for the community", fund([coin(1, "nothing")])],
  ["no coins for the community", fund([coin(0)])],
  [
    "unjail of nobody",
    message("/cosmos.slashing.v1beta1.MsgUnjail", { validatorAddr: ownOperator }),
  ],
  ["vote on nothing", vote(999n, 1)],
  ["vote without option", vote(999n, 0)],
  ["vote of another option", vote(999n, 9)],
  [
    "older vote on nothing",
    message("/cosmos.gov.v1beta1.MsgVote", { proposalId: 999n, voter: address, option: 1 }),
  ],
  ["weighted vote without options", weightedVote([])],
  ["weighted vote on nothing", weightedVote([{ option: 1, weight: "1.0" }])],
  ["weighted vote of less than one", weightedVote([{ option: 1, weight: "0.5" }])],
  [
    "weighted vote of more than one",
    weightedVote([
      { option: 1, weight: "0.6" },
      { option: 2, weight: "0.6" },
    ]),
  ],
  ["deposit on nothing", deposit([coin(1)])],
  ["deposit of nothing", deposit([coin(0)])],
  ["deposit of another coin on nothing", deposit([coin(1, "nothing")])],
  ["proposal without title", submit({ title: "" })],
  ["proposal without summary", submit({ summary: "" })],
  ["proposal without content", submit({ metadata: "" })],
  ["proposal with another coin", submit({ initialDeposit: [coin(1, "nothing")] })],
  [
    "proposal of another authority",
    submit({
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgSend",
          value: client.registry.encode(send(nobody, [coin(1)])),
        },
      ],
    }),
  ],
  [
    "cancelling of no proposal",
    message("/cosmos.gov.v1.MsgCancelProposal", { proposalId: 999n, proposer: address }),
  ],
  // From here on the account has stake.
  ["a delegation", delegate(operator, coin(1_000_000))],
  ["undelegation above the delegation", undelegate(operator, coin(10n ** 30n))],
  ["undelegation of another coin", undelegate(operator, coin(1, "nothing"))],
  ["redelegation to the same", redelegate(operator, operator, coin(1))],
  ["redelegation to nobody", redelegate(operator, nobodyOperator, coin(1))],
  ["redelegation of another coin", redelegate(operator, nobodyOperator, coin(1, "nothing"))],
  ["redelegation above the delegation", redelegate(operator, nobodyOperator, coin(10n ** 30n))],
  ["an undelegation", undelegate(operator, coin(1_000))],
  ["cancelling at another height", cancel(operator, coin(1), 1n)],
];

for (const [name, one] of CASES) await refused(name, [one], { paid });
client.disconnect();
print({ failures: refusals });

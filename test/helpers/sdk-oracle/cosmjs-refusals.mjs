/**
 * What a chain answers CosmJS' wallet when something is wrong: prints refusals and simulations as
 * JSON. It runs against any chain with ethsecp256k1 accounts. Input: JSON on standard input.
 */
import { fromBech32, toBech32 } from "@cosmjs/encoding";
import { SigningStargateClient } from "@cosmjs/stargate";
import { DirectEthSecp256k1Wallet } from "@cosmjs/proto-signing";
import { TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const input = JSON.parse(Buffer.concat(chunks).toString());
const { url, key, prefix, denom, operator, nobody, nobodyOperator, blocked, feeAmount } = input;
const wallet = await DirectEthSecp256k1Wallet.fromKey(Buffer.from(key, "hex"), prefix);
const [{ address }] = await wallet.getAccounts();
const ownOperator = toBech32(`${prefix}valoper`, fromBech32(address, 90).data);
const client = await SigningStargateClient.connectWithSigner(url, wallet, {
  broadcastPollIntervalMs: 50,
});
const coin = (amount, of = denom) => ({ denom: of, amount: `${amount}` });
const fee = { amount: [coin(feeAmount)], gas: "400000" };
const message = (typeUrl, value) => ({ typeUrl, value });
const bank = "/cosmos.bank.v1beta1";
const staking = "/cosmos.staking.v1beta1";
const distribution = "/cosmos.distribution.v1beta1";
const send = (toAddress, amount) =>
  message(`${bank}.MsgSend`, { fromAddress: address, toAddress, amount });
const delegate = (validatorAddress, amount) =>
  message(`${staking}.MsgDelegate`, { delegatorAddress: address, validatorAddress, amount });
const undelegate = (validatorAddress, amount) =>
  message(`${staking}.MsgUndelegate`, { delegatorAddress: address, validatorAddress, amount });
const redelegate = (validatorSrcAddress, validatorDstAddress, amount) =>
  message(`${staking}.MsgBeginRedelegate`, {
    delegatorAddress: address,
    validatorSrcAddress,
    validatorDstAddress,
    amount,
  });
const withdraw = (validatorAddress) =>
  message(`${distribution}.MsgWithdrawDelegatorReward`, {
    delegatorAddress: address,
    validatorAddress,
  });

const refusals = {};

function keep(name, { code, codespace, log }) {
  refusals[name] = { code, codespace, log };
}

/** Signs for a sequence of its own choice and broadcasts. */
async function sent(messages, { paid = fee, memo = "", signed = {}, timeoutHeight } = {}) {
  const { accountNumber, sequence } = await client.getSequence(address);
  const chainId = await client.getChainId();
  const signerData = { accountNumber, sequence, chainId, ...signed };
  if (signed.ahead !== undefined) signerData.sequence = sequence + signed.ahead;
  const raw = await client.sign(address, messages, paid, memo, signerData, timeoutHeight);
  return TxRaw.encode(raw).finish();
}

async function broadcast(name, bytes) {
  try {
    const result = await client.broadcastTx(bytes, 60_000, 50);
    const found = await fetch(`${url}/tx?hash=0x${result.transactionHash}`);
    keep(name, (await found.json()).result.tx_result);
  } catch (error) {
    if (error.code === undefined) throw error;
    keep(name, error);
  }
}

async function refused(name, messages, options) {
  await broadcast(name, await sent(messages, options));
}

const one = [send(nobody, [coin(1)])];
await refused("sequence ahead", one, { signed: { ahead: 5 } });
await refused("another chain", one, { signed: { chainId: "elsewhere-1" } });
await refused("another account number", one, { signed: { accountNumber: 4242 } });
await refused("memo too long", one, { memo: "m".repeat(300) });
await refused("gas for its bytes missing", one, { paid: { ...fee, gas: "1000" } });
await refused("height passed", one, { timeoutHeight: 1n });
await refused("fee above the balance", one, { paid: { ...fee, amount: [coin(10n ** 40n)] } });
await refused("fee granter", one, { paid: { ...fee, granter: nobody } });
const strange = message("/nothing.v1.MsgNothing", new Uint8Array([10, 1, 65]));
client.registry.register("/nothing.v1.MsgNothing", {
  encode: (bytes) => ({ finish: () => bytes }),
  decode: (bytes) => bytes,
  fromPartial: (bytes) => bytes,
});
await refused("unknown message", [strange]);
await broadcast("no transaction", new Uint8Array([1, 2, 3]));
const changed = TxRaw.decode(await sent(one));
changed.signatures = [new Uint8Array(64).fill(7)];
await broadcast("another signature", TxRaw.encode(changed).finish());
changed.signatures = [];
await broadcast("no signature", TxRaw.encode(changed).finish());

await refused("more than the balance", [send(nobody, [coin(10n ** 40n)])]);
await refused("coins that nobody has", [send(nobody, [coin(1, "nothing")])]);
await refused("no coins", [send(nobody, [])]);
await refused("coins of nothing", [send(nobody, [coin(0)])]);
await refused("no address", [send("nonsense", [coin(1)])]);
await refused("an address of another chain", [
  send("osmo1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5qg4zve", [coin(1)]),
]);
await refused("blocked account", [send(blocked, [coin(1)])]);
await refused("delegation to nobody", [delegate(nobodyOperator, coin(1))]);
await refused("delegation to nonsense", [delegate("nonsense", coin(1))]);
await refused("delegation of another coin", [delegate(operator, coin(1, "nothing"))]);
await refused("delegation of nothing", [delegate(operator, coin(0))]);
await refused("delegation above the balance", [delegate(operator, coin(10n ** 40n))]);
await refused("undelegation without delegation", [undelegate(operator, coin(1))]);
await refused("undelegation from nobody", [undelegate(nobodyOperator, coin(1))]);
await refused("redelegation to the same", [redelegate(operator, operator, coin(1))]);
await refused("redelegation without delegation", [redelegate(operator, nobodyOperator, coin(1))]);
await refused("reward without delegation", [withdraw(operator)]);
await refused("reward of nobody", [withdraw(nobodyOperator)]);
await refused("commission of nobody", [
  message(`${distribution}.MsgWithdrawValidatorCommission`, { validatorAddress: ownOperator }),
]);
await refused("withdraw address of the chain", [
  message(`${distribution}.MsgSetWithdrawAddress`, {
    delegatorAddress: address,
    withdrawAddress: blocked,
  }),
]);
await refused("vote on nothing", [
  message("/cosmos.gov.v1.MsgVote", { proposalId: 999n, voter: address, option: 1, metadata: "" }),
]);
await refused("older vote on nothing", [
  message("/cosmos.gov.v1beta1.MsgVote", { proposalId: 999n, voter: address, option: 1 }),
]);
await refused("deposit on nothing", [
  message("/cosmos.gov.v1beta1.MsgDeposit", {
    proposalId: 999n,
    depositor: address,
    amount: [coin(1)],
  }),
]);

/** A POST to REST. */
async function post(route, body) {
  const reply = await fetch(`${input.rest}/cosmos/tx/v1beta1/${route}`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  return { status: reply.status, body: await reply.json() };
}

const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const failing = await sent([delegate(nobodyOperator, coin(1))]);
const simulations = {
  "of a failure": await post("simulate", { tx_bytes: base64(failing) }),
  "of no bytes": await post("simulate", { tx_bytes: "" }),
};
client.disconnect();
// A refused broadcast leaves a timer of a minute behind; nobody has to wait for it.
process.stdout.write(`${JSON.stringify({ refusals, simulations })}\n`, () => process.exit(0));

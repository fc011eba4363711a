/**
 * What a chain answers CosmJS' wallet when something is wrong before a block has it: prints refusals
 * and simulations as JSON. It runs against any chain with ethsecp256k1 accounts.
 */
import { TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx";
import { connect, print, readInput } from "./cosmjs-wallet.mjs";

const input = await readInput();
const { nobody, nobodyOperator } = input;
const wallet = await connect(input);
const { address, client, coin, fee, refusals, sent, broadcast, refused } = wallet;
const message = (typeUrl, value) => ({ typeUrl, value });
const send = (toAddress, amount) =>
  message("/cosmos.bank.v1beta1.MsgSend", { fromAddress: address, toAddress, amount });
const delegate = (validatorAddress, amount) =>
  message("/cosmos.staking.v1beta1.MsgDelegate", {
    delegatorAddress: address,
    validatorAddress,
    amount,
  });

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
  "of two messages": await post("simulate", { tx_bytes: base64(await sent([...one, ...one])) }),
  "of no bytes": await post("simulate", { tx_bytes: "" }),
};
client.disconnect();
print({ refusals, simulations });

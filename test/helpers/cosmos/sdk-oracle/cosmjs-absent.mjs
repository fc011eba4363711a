/**
 * What CosmJS hears of modules that the chain does not have: their messages, their queries, and fees that
 * somebody else is to pay. Prints refusals and the texts of failed queries as JSON.
 */
import { QueryClient, setupAuthzExtension, setupFeegrantExtension } from "@cosmjs/stargate";
import { connectComet } from "@cosmjs/tendermint-rpc";
import { GenericAuthorization } from "cosmjs-types/cosmos/authz/v1beta1/authz";
import { MsgExec, MsgGrant, MsgRevoke } from "cosmjs-types/cosmos/authz/v1beta1/tx";
import { MsgSend } from "cosmjs-types/cosmos/bank/v1beta1/tx";
import { BasicAllowance } from "cosmjs-types/cosmos/feegrant/v1beta1/feegrant";
import { MsgGrantAllowance, MsgRevokeAllowance } from "cosmjs-types/cosmos/feegrant/v1beta1/tx";
import { connect, print, readInput } from "./cosmjs-wallet.mjs";

const input = await readInput();
const { nobody } = input;
const { address, client, coin, fee, refusals, refused } = await connect(input);
const pair = { granter: address, grantee: nobody };
const send = { fromAddress: address, toAddress: nobody, amount: [coin(1)] };
const packed = (typeUrl, type, value) => ({
  typeUrl,
  value: type.encode(type.fromPartial(value)).finish(),
});
const authorization = packed("/cosmos.authz.v1beta1.GenericAuthorization", GenericAuthorization, {
  msg: "/cosmos.bank.v1beta1.MsgSend",
});
const allowance = packed("/cosmos.feegrant.v1beta1.BasicAllowance", BasicAllowance, {});
const own = [packed("/cosmos.bank.v1beta1.MsgSend", MsgSend, send)];

const messages = [
  { type: MsgGrant, value: { ...pair, grant: { authorization } } },
  { type: MsgExec, value: { grantee: address, msgs: own } },
  { type: MsgRevoke, value: { ...pair, msgTypeUrl: "/cosmos.bank.v1beta1.MsgSend" } },
  { type: MsgGrantAllowance, value: { ...pair, allowance } },
  { type: MsgRevokeAllowance, value: pair },
];
const simulations = {};
for (const { type, value } of messages) {
  const { typeUrl } = type;
  const name = typeUrl.slice(typeUrl.lastIndexOf(".") + 1);
  client.registry.register(typeUrl, type);
  const message = { typeUrl, value: type.fromPartial(value) };
  await refused(name, [message]);
  await client.simulate(address, [message], "").catch((error) => {
    simulations[name] = error.message;
  });
}
const plain = [{ typeUrl: "/cosmos.bank.v1beta1.MsgSend", value: send }];
await refused("fee.granter", plain, { paid: { ...fee, granter: nobody } });
await refused("fee.payer", plain, { paid: { ...fee, payer: nobody } });

const comet = await connectComet(input.url);
const asking = QueryClient.withExtensions(comet, setupAuthzExtension, setupFeegrantExtension);
const asked = {
  "authz grants": () => asking.authz.grants(address, nobody, ""),
  "authz granter": () => asking.authz.granterGrants(address),
  "authz grantee": () => asking.authz.granteeGrants(address),
  "feegrant allowance": () => asking.feegrant.allowance(address, nobody),
  "feegrant allowances": () => asking.feegrant.allowances(address),
};
const queries = {};
for (const [name, ask] of Object.entries(asked)) {
  await ask().catch((error) => {
    queries[name] = error.message;
  });
}
comet.disconnect();
client.disconnect();
print({ refusals, simulations, queries });

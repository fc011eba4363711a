// CosmJS as an independent encoder and signer, in a thread of its own: it is CommonJS over ES
// modules, which Jest cannot load. Requests and answers are JSON lists; whoever asks waits for `answered`.
import { workerData } from "node:worker_threads";
import { makeSignDoc as makeAminoDoc, serializeSignDoc } from "@cosmjs/amino";
import {
  DirectEthSecp256k1HdWallet,
  encodePubkey,
  makeAuthInfoBytes,
  makeSignDoc,
  Registry,
} from "@cosmjs/proto-signing";
import { AminoTypes, createDefaultAminoConverters, defaultRegistryTypes } from "@cosmjs/stargate";
import { MsgCommunityPoolSpend } from "cosmjs-types/cosmos/distribution/v1beta1/tx";
import { MsgCancelProposal } from "cosmjs-types/cosmos/gov/v1/tx";
import { TextProposal } from "cosmjs-types/cosmos/gov/v1beta1/gov";
import { MsgUpdateParams as MintUpdateParams } from "cosmjs-types/cosmos/mint/v1beta1/tx";
import { ParameterChangeProposal } from "cosmjs-types/cosmos/params/v1beta1/params";
import {
  MsgUnjail,
  MsgUpdateParams as SlashingUpdateParams,
} from "cosmjs-types/cosmos/slashing/v1beta1/tx";
import { MsgUpdateParams as StakingUpdateParams } from "cosmjs-types/cosmos/staking/v1beta1/tx";
import { MsgCancelUpgrade, MsgSoftwareUpgrade } from "cosmjs-types/cosmos/upgrade/v1beta1/tx";
import { SignMode } from "cosmjs-types/cosmos/tx/signing/v1beta1/signing";
import { Tx, TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx";

const registry = new Registry([
  ...defaultRegistryTypes,
  ["/cosmos.gov.v1.MsgCancelProposal", MsgCancelProposal],
  ["/cosmos.gov.v1beta1.TextProposal", TextProposal],
  ["/cosmos.distribution.v1beta1.MsgCommunityPoolSpend", MsgCommunityPoolSpend],
  ["/cosmos.mint.v1beta1.MsgUpdateParams", MintUpdateParams],
  ["/cosmos.params.v1beta1.ParameterChangeProposal", ParameterChangeProposal],
  ["/cosmos.slashing.v1beta1.MsgUnjail", MsgUnjail],
  ["/cosmos.slashing.v1beta1.MsgUpdateParams", SlashingUpdateParams],
  ["/cosmos.staking.v1beta1.MsgUpdateParams", StakingUpdateParams],
  ["/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade", MsgSoftwareUpgrade],
  ["/cosmos.upgrade.v1beta1.MsgCancelUpgrade", MsgCancelUpgrade],
]);
/** What a proposal holds, as bytes. */
const packed = ({ typeUrl, value }) => {
  const isPacked = !(typeof value === "object" && !Array.isArray(value));
  return isPacked ? { typeUrl, value } : { typeUrl, value: registry.encode({ typeUrl, value }) };
};
const withPacked = ({ typeUrl, value }) => {
  const { messages, content } = value;
  return {
    typeUrl,
    value: {
      ...value,
      ...(messages === undefined ? {} : { messages: messages.map(packed) }),
      ...(content === undefined ? {} : { content: packed(content) }),
    },
  };
};
const converter = new AminoTypes(createDefaultAminoConverters());
const { port, answered } = workerData;
port.on("message", async (question) => {
  let answer;
  try {
    answer = { text: JSON.stringify(await answersTo(question)) };
  } catch (error) {
    answer = { error: String(error) };
  }
  port.postMessage(answer, []);
  Atomics.store(answered, 0, 1);
  Atomics.notify(answered, 0);
});

async function answersTo(question) {
  const { mnemonic, requests } = JSON.parse(question, (key, value) =>
    typeof value === "string" && /^[0-9]+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  );
  const wallet = await DirectEthSecp256k1HdWallet.fromMnemonic(mnemonic, { prefix: "addr" });
  const answers = [];
  for (const request of requests) answers.push(await signed(wallet, request));
  return answers;
}

async function signed(wallet, request) {
  const [account] = await wallet.getAccounts();
  const pubkey = encodePubkey({
    type: "os/PubKeyEthSecp256k1",
    value: Buffer.from(account.pubkey).toString("base64"),
  });
  const { messages, memo = "", sequence = 0, gas = 65_000, chainId, granter, mode } = request;
  if (request.isSimulated === true)
    return simulated(account, messages.map(withPacked), memo, sequence);
  const fee = request.fee ?? [{ denom: "atoken", amount: "1625" }];
  const timeoutHeight = BigInt(request.timeoutHeight ?? 0);
  const bodyBytes = registry.encodeTxBody({
    messages: messages.map(withPacked),
    memo,
    timeoutHeight,
  });
  const authInfoBytes = makeAuthInfoBytes(
    [{ pubkey, sequence }],
    fee,
    gas,
    granter,
    undefined,
    mode,
  );
  const doc = makeSignDoc(bodyBytes, authInfoBytes, chainId, 0);
  const { signature } = await wallet.signDirect(account.address, doc);
  const signatures = [Buffer.from(signature.signature, "base64")];
  const raw = TxRaw.encode({ bodyBytes, authInfoBytes, signatures }).finish();
  const aminoFee = { amount: fee, gas: String(gas) };
  const height = timeoutHeight === 0n ? undefined : timeoutHeight;
  const aminoOf = () =>
    serializeSignDoc(
      makeAminoDoc(
        messages.map((message) => converter.toAmino(message)),
        aminoFee,
        chainId,
        memo,
        0,
        sequence,
        height,
      ),
    );
  return {
    raw: Buffer.from(raw).toString("hex"),
    ...(request.amino === true ? { amino: Buffer.from(aminoOf()).toString("utf8") } : {}),
  };
}

// What `SigningStargateClient.simulate` sends (@cosmjs/stargate, modules/tx/queries): no signature, fee and
// mode, and the name of the key that all keys have there.
function simulated(account, messages, memo, sequence) {
  const publicKey = encodePubkey({
    type: "tendermint/PubKeySecp256k1",
    value: Buffer.from(account.pubkey).toString("base64"),
  });
  const modeInfo = { single: { mode: SignMode.SIGN_MODE_UNSPECIFIED } };
  const tx = Tx.fromPartial({
    authInfo: { fee: {}, signerInfos: [{ publicKey, sequence: BigInt(sequence), modeInfo }] },
    body: { messages: messages.map((message) => registry.encodeAsAny(message)), memo },
    signatures: [new Uint8Array()],
  });
  return { raw: Buffer.from(Tx.encode(tx).finish()).toString("hex") };
}

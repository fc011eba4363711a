/**
 * A CosmJS wallet of one key on any chain with ethsecp256k1 accounts, that keeps what it is refused.
 * Input: JSON on standard input, whose members `connect` names.
 */
import { fromBech32, toBech32 } from "@cosmjs/encoding";
import { SigningStargateClient } from "@cosmjs/stargate";
import { DirectEthSecp256k1Wallet } from "@cosmjs/proto-signing";
import { TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx";

/** The JSON on standard input. */
export async function readInput() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/**
 * Signs for the account of a key.
 * @param input.url of the consensus RPC
 * @param input.key 64 hex digits
 * @param input.prefix of addresses
 * @param input.denom smallest unit
 * @param input.feeAmount of every transaction, in it
 */
export async function connect({ url, key, prefix, denom, feeAmount }) {
  const wallet = await DirectEthSecp256k1Wallet.fromKey(Buffer.from(key, "hex"), prefix);
  const [{ address }] = await wallet.getAccounts();
  const client = await SigningStargateClient.connectWithSigner(url, wallet, {
    broadcastPollIntervalMs: 50,
  });
  const coin = (amount, of = denom) => ({ denom: of, amount: `${amount}` });
  const fee = { amount: [coin(feeAmount)], gas: "400000" };
  const refusals = {};

  /** Signs for a sequence of its own choice. */
  async function sent(messages, { paid = fee, memo = "", signed = {}, timeoutHeight } = {}) {
    const { accountNumber, sequence } = await client.getSequence(address);
    const chainId = await client.getChainId();
    const signerData = { accountNumber, sequence, chainId, ...signed };
    if (signed.ahead !== undefined) signerData.sequence = sequence + signed.ahead;
    const raw = await client.sign(address, messages, paid, memo, signerData, timeoutHeight);
    return TxRaw.encode(raw).finish();
  }

  /** Broadcasts, and keeps under a name what the block says of it, or why it came into none. */
  async function broadcast(name, bytes) {
    const keep = ({ code, codespace, log }) => {
      refusals[name] = { code, codespace, log };
    };
    try {
      const result = await client.broadcastTx(bytes, 60_000, 50);
      const found = await fetch(`${url}/tx?hash=0x${result.transactionHash}`);
      keep((await found.json()).result.tx_result);
    } catch (error) {
      if (error.code === undefined) throw error;
      keep(error);
    }
  }

  async function refused(name, messages, options) {
    await broadcast(name, await sent(messages, options));
  }

  const ownOperator = toBech32(`${prefix}valoper`, fromBech32(address, 90).data);
  return { address, ownOperator, client, coin, fee, refusals, sent, broadcast, refused };
}

/** Prints an object as JSON and ends. */
export function print(value) {
  // A refused broadcast leaves a timer of a minute behind; nobody has to wait for it.
  process.stdout.write(`${JSON.stringify(value)}\n`, () => process.exit(0));
}

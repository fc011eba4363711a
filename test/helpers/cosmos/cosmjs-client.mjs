// CosmJS as a wallet: connects to a node, does what it is told and prints the answers as JSON.
import { SigningStargateClient } from "@cosmjs/stargate";
import { DirectEthSecp256k1Wallet } from "@cosmjs/proto-signing";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { url, key, sends, queries } = JSON.parse(Buffer.concat(chunks).toString());
const wallet = await DirectEthSecp256k1Wallet.fromKey(Buffer.from(key, "hex"), "addr");
const [{ address }] = await wallet.getAccounts();
const options = { broadcastPollIntervalMs: 100, broadcastTimeoutMs: 240_000 };
const client = await SigningStargateClient.connectWithSigner(url, wallet, options);
const results = [];
for (const { to, amount, fee, gas, memo, messages } of sends) {
  try {
    const coins = [{ denom: "atoken", amount }];
    const paid = { amount: [{ denom: "atoken", amount: fee }], gas };
    const { code, height, transactionHash, gasUsed, events } =
      messages === undefined
        ? await client.sendTokens(address, to, coins, paid, memo)
        : await client.signAndBroadcast(address, messages, paid, memo);
    const found = await client.getTx(transactionHash);
    const types = events.map(({ type }) => type);
    const used = Number(gasUsed);
    results.push({ code, height, hash: transactionHash, used, types, foundAt: found?.height });
  } catch (error) {
    results.push({ code: error.code, log: error.log ?? error.message });
  }
}
const found = [];
for (const query of queries) found.push((await client.searchTx(query)).map(({ hash }) => hash));
const { sequence } = await client.getSequence(address);
client.disconnect();
// A refused broadcast leaves a timer of a minute behind; nobody has to wait for it.
process.stdout.write(JSON.stringify({ address, results, found, sequence }), () => process.exit(0));

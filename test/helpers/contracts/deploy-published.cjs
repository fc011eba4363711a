/**
 * A hardhat script, run on any of its networks: deploys every contract of OpenZeppelin's package that
 * can be, then Uniswap V2 from its own packages, adds liquidity and swaps. Its last line is JSON of
 * what came out, so that two networks can be compared: `results` by step, `times`, the seconds of the
 * transactions' blocks. Environment: MODULES, folder of packages; TIMES, JSON of the seconds that
 * hardhat's own chain gives the blocks, in the order of the transactions.
 */
const fs = require("node:fs");
const path = require("node:path");
const modules = process.env.MODULES;
const hre = require(path.join(modules, "hardhat"));
const { Interface, keccak256 } = require(path.join(modules, "ethers"));

const times = JSON.parse(process.env.TIMES ?? "[]");
const GAS = "0x989680";
const GAS_PRICE = "0x3b9aca00";
/** A proxy's first call, which it must have: owner(). */
const CALLS_OWNER = "0x8da5cb5b";
const DEADLINE = 4_000_000_000n;
const AMOUNT = 10n ** 24n;
/** As `until` of the tests: on a machine that is busy otherwise slow is not broken. */
const MINED_TIMEOUT_MS = 240_000;

const send = (method, params = []) => hre.network.provider.send(method, params);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const artifact = (...parts) => JSON.parse(fs.readFileSync(path.join(modules, ...parts), "utf8"));
const codeOf = ({ bytecode }) => (bytecode.startsWith("0x") ? bytecode : `0x${bytecode}`);

async function receiptOf(hash) {
  const deadlineMs = performance.now() + MINED_TIMEOUT_MS;
  do {
    const receipt = await send("eth_getTransactionReceipt", [hash]);
    if (receipt !== null) return receipt;
    await wait(50);
  } while (performance.now() < deadlineMs);
  throw new Error(`${hash} is not mined`);
}

/** What of a receipt may not differ between networks; only some name what a failed creation would have made. */
const shownOf = ({ status, gasUsed, logs, contractAddress }) => {
  const shownLogs = logs.map(({ address, topics, data }) => ({ address, topics, data }));
  const created = status === "0x1" ? contractAddress : null;
  return { status, gasUsed: BigInt(gasUsed).toString(), logs: shownLogs, contractAddress: created };
};

async function main() {
  const [from] = await send("eth_accounts");
  const results = {};
  const hashes = [];
  const sendTransaction = async (fields) => {
    const seconds = times[hashes.length];
    if (seconds !== undefined) await send("evm_setNextBlockTimestamp", [seconds]);
    const transaction = { from, gas: GAS, gasPrice: GAS_PRICE, ...fields };
    hashes.push(await send("eth_sendTransaction", [transaction]));
    return hashes.at(-1);
  };
  const deployment = (json, args) => {
    const parameters = new Interface(json.abi).encodeDeploy(args).slice(2);
    return sendTransaction({ data: codeOf(json) + parameters });
  };
  const showDeployed = async (name, hash) => {
    const shown = shownOf(await receiptOf(hash));
    const address = shown.contractAddress ?? from;
    const code = await send("eth_getCode", [address, "latest"]);
    results[name] = { ...shown, codeHash: keccak256(code), codeBytes: code.length / 2 - 1 };
    return address;
  };
  const deployed = async (name, json, args) => {
    const address = await showDeployed(name, await deployment(json, args));
    return { address, abi: new Interface(json.abi) };
  };
  const acted = async (name, { address, abi }, method, args, value = 0n) => {
    const data = abi.encodeFunctionData(method, args);
    const hash = await sendTransaction({ to: address, data, value: `0x${value.toString(16)}` });
    results[name] = shownOf(await receiptOf(hash));
  };
  const asked = async (name, { address, abi }, method, args) => {
    const data = abi.encodeFunctionData(method, args);
    results[name] = await send("eth_call", [{ from, to: address, data }, "latest"]);
  };

  const oz = (name) => artifact("@openzeppelin/contracts/build/contracts", name);
  const beaconTarget = await deployed("VestingWallet", oz("VestingWallet.json"), [from, 1, 2]);
  const beacon = await deployed("UpgradeableBeacon", oz("UpgradeableBeacon.json"), [
    beaconTarget.address,
    from,
  ]);
  const argumentsOf = {
    AccessManager: [from],
    BeaconProxy: [beacon.address, "0x"],
    CrosschainRemoteExecutor: undefined,
    ERC1967Proxy: [beaconTarget.address, CALLS_OWNER],
    ERC2771Forwarder: ["forwarder"],
    ProxyAdmin: [from],
    TimelockController: [1, [from], [from], from],
    TransparentUpgradeableProxy: [beaconTarget.address, from, CALLS_OWNER],
  };
  const folder = path.join(modules, "@openzeppelin/contracts/build/contracts");
  const pending = [];
  for (const file of fs.readdirSync(folder).toSorted()) {
    const json = artifact("@openzeppelin/contracts/build/contracts", file);
    const name = path.basename(file, ".json");
    const inputs = json.abi.find(({ type }) => type === "constructor")?.inputs ?? [];
    const args = inputs.length === 0 ? [] : argumentsOf[name];
    if (json.bytecode.length < 100 || args === undefined || name in results) continue;
    pending.push([name, await deployment(json, args)]);
  }
  for (const [name, hash] of pending) await showDeployed(name, hash);

  const uniswap = (part, name) => artifact(`@uniswap/v2-${part}/build`, `${name}.json`);
  const factory = await deployed("factory", uniswap("core", "UniswapV2Factory"), [from]);
  const weth = await deployed("weth", uniswap("periphery", "WETH9"), []);
  const router = await deployed("router", uniswap("periphery", "UniswapV2Router02"), [
    factory.address,
    weth.address,
  ]);
  const erc20 = uniswap("periphery", "ERC20");
  const left = await deployed("left", erc20, [AMOUNT]);
  const right = await deployed("right", erc20, [AMOUNT]);
  for (const [name, token] of [["approve left", left], ["approve right", right]]) {
    await acted(name, token, "approve", [router.address, AMOUNT]);
  }
  const path2 = [left.address, right.address];
  await acted("add liquidity", router, "addLiquidity", [
    ...path2, AMOUNT / 4n, AMOUNT / 2n, 0, 0, from, DEADLINE,
  ]);
  const coins = [left.address, AMOUNT / 4n, 0, 0, from, DEADLINE];
  await acted("add liquidity of coins", router, "addLiquidityETH", coins, 10n ** 20n);
  await acted("swap", router, "swapExactTokensForTokens", [10n ** 21n, 0, path2, from, DEADLINE]);
  const toCoins = [10n ** 20n, 0, [right.address, left.address, weth.address], from, DEADLINE];
  await acted("swap over two pairs", router, "swapExactTokensForETH", toCoins);
  const paths = [1, [weth.address, left.address], from, DEADLINE];
  await acted("swap coins", router, "swapExactETHForTokens", paths, 10n ** 18n);
  await acted("swap too late", router, "swapExactTokensForTokens", [1, 0, path2, from, 1]);
  await asked("amounts", router, "getAmountsOut", [10n ** 18n, path2]);
  await asked("left kept", left, "balanceOf", [from]);
  await asked("right kept", right, "balanceOf", [from]);
  const timesSeen = [];
  for (const hash of hashes) {
    const { blockNumber } = await receiptOf(hash);
    const { timestamp } = await send("eth_getBlockByNumber", [blockNumber, false]);
    timesSeen.push(Number(timestamp));
  }
  console.log(JSON.stringify({ results, times: timesSeen }));
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

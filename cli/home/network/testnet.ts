/** A network of its own on one or many hosts: a home for every node, one genesis, one faucet. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Address } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { parseValidatorIdentity } from "../../../node/consensus/signing/validator-key.js";
import {
  createLocalGenesis,
  encodeGenesis,
  type GenesisValidator,
  parseGenesis,
} from "../../../node/settings/genesis.js";
import { firstModuleParams, type ModuleParams } from "../../../node/settings/module-params.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { createFileOnce, SECRET_MODE } from "../home-file.js";
import { CliError } from "../../errors.js";
import { createOpenFolder, homePaths } from "../home.js";
import { writeNodeHome } from "../node-home.js";
import { PORT_STEP } from "../ports.js";
import { createNodeKey, createValidatorKeyFile, type NewNodeKey } from "../keys/validator-keys.js";
import { createPrivateKey, encodeKeyFile } from "../keys/wallet-keys.js";

/** Stake of every validator of a new chain, TOKEN: its power. */
export const VALIDATOR_STAKE = 100;

/** What a network is made from. */
export interface TestnetOptions {
  readonly out: string;
  readonly validators: number;
  readonly fullNodes: number;
  /** Added to every port of every node. */
  readonly portOffset: number;
  /** One per node; undefined puts all on 127.0.0.1, `PORT_STEP` apart. */
  readonly hosts?: readonly string[];
  readonly blockIntervalMs?: number;
  /** Parameters of the modules; the first values when absent. */
  readonly modules?: ModuleParams;
  readonly clock: Clock;
}

/** A node that was written. */
export interface TestnetNode {
  /** `node0`, `full0`, ... */
  readonly name: string;
  readonly home: string;
  /** 40 hex digits (D24). */
  readonly nodeId: string;
  /** Where the others reach it: `<node_id>@<host>:<port>`. */
  readonly peerAddress: string;
  readonly portOffset: number;
  readonly isValidator: boolean;
  /** Address of its validator key; a full node has a key without power. */
  readonly validatorAddress: Address;
}

/** A network that was written. */
export interface Testnet {
  readonly out: string;
  readonly faucetKeyFile: string;
  readonly faucetAddress: Address;
  readonly nodes: readonly TestnetNode[];
}

/** A node before it is written. */
interface PlannedNode extends TestnetNode {
  readonly nodeKey: NewNodeKey;
  readonly validatorKey: string;
  readonly validator: GenesisValidator;
  /** Owns a validator's stake. */
  readonly operatorKey: Uint8Array;
}

/**
 * Writes `out/node0..`, then `out/full0..`, and `out/faucet.key`.
 * @throws HOME_EXISTS when one of them is there, HOME_UNUSABLE naming folder and cause,
 *   GENESIS_INVALID where the parameters do not fit the network
 */
export async function createTestnet(options: TestnetOptions): Promise<Testnet> {
  const out = resolve(options.out);
  const nodes = planNodes(options, out);
  const faucetKeyFile = join(out, "faucet.key");
  assertUnused([faucetKeyFile, ...nodes.map(({ home }) => home)]);
  const faucetKey = createPrivateKey();
  const faucetAddress = privateKeyToAddress(faucetKey);
  const genesis = encodeGenesis(
    createLocalGenesis({
      network: "testnet",
      faucet: faucetAddress,
      genesisTimeMs: options.clock.nowMs(),
      blockIntervalMs: options.blockIntervalMs,
      validators: nodes.filter(({ isValidator }) => isValidator).map(({ validator }) => validator),
      modules: options.modules ?? firstModuleParams(),
    }),
  );
  // What no node would start from is not written.
  parseGenesis(genesis);
  await createOpenFolder(out);
  // Two runs on one folder: the first one takes the key's name, and the other leaves.
  if (!(await createFileOnce(faucetKeyFile, encodeKeyFile(faucetKey), SECRET_MODE))) {
    assertUnused([faucetKeyFile]);
  }
  for (const node of nodes) {
    await writeNodeHome(homePaths(node.home), {
      genesis,
      nodeKey: node.nodeKey.text,
      validatorKey: node.validatorKey,
      ...(node.isValidator ? { operatorKey: encodeKeyFile(node.operatorKey) } : {}),
      portOffset: node.portOffset,
      moniker: node.name,
      p2p: peerSettings(options, nodes, node),
    });
  }
  return { out, faucetKeyFile, faucetAddress, nodes: nodes.map(publicPart) };
}

function planNodes(options: TestnetOptions, out: string): readonly PlannedNode[] {
  const { validators, fullNodes, portOffset, hosts } = options;
  return Array.from({ length: validators + fullNodes }, (_, index) => {
    const isValidator = index < validators;
    const name = isValidator ? `node${index}` : `full${index - validators}`;
    const offset = hosts === undefined ? portOffset + PORT_STEP * index : portOffset;
    const nodeKey = createNodeKey();
    const validatorKey = createValidatorKeyFile();
    const identity = parseValidatorIdentity(validatorKey, "the new key");
    const operatorKey = createPrivateKey();
    const operator = privateKeyToAddress(operatorKey);
    const host = hosts?.[index] ?? "127.0.0.1";
    return {
      name,
      home: join(out, name),
      nodeId: nodeKey.nodeId,
      peerAddress: `${nodeKey.nodeId}@${host}:${DEFAULT_PORTS.p2p + offset}`,
      portOffset: offset,
      isValidator,
      validatorAddress: identity.address,
      nodeKey,
      validatorKey,
      validator: { ...identity, power: VALIDATOR_STAKE, operator, moniker: name },
      operatorKey,
    };
  });
}

function assertUnused(paths: readonly string[]): void {
  const found = paths.find((path) => existsSync(path));
  if (found === undefined) return;
  const message = `${found} is there already: choose another folder for the network.`;
  throw new CliError("HOME_EXISTS", message, { details: { found } });
}

/**
 * Everybody dials the validators and nobody else; across hosts the port has to be open to them. All homes
 * have the same list: a node passes itself over.
 */
function peerSettings(options: TestnetOptions, nodes: readonly PlannedNode[], own: PlannedNode) {
  const validators = nodes.filter(({ isValidator }) => isValidator);
  const peers = { persistent_peers: validators.map(({ peerAddress }) => peerAddress), pex: false };
  if (options.hosts === undefined) return peers;
  return {
    ...peers,
    laddr: { host: "0.0.0.0", port: DEFAULT_PORTS.p2p + own.portOffset },
    external_address: own.peerAddress.slice(own.peerAddress.indexOf("@") + 1),
  };
}

/** The node without its keys. */
function publicPart(node: PlannedNode): TestnetNode {
  const { name, home, nodeId, peerAddress, portOffset, isValidator, validatorAddress } = node;
  return { name, home, nodeId, peerAddress, portOffset, isValidator, validatorAddress };
}

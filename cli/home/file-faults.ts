/**
 * The files that the processes of a kit read at their start beside their settings, looked at before
 * any of them is started. Files that are missing are not this module's: the home's init makes them,
 * or refuses a home that lost them. Nothing is decrypted here: the hot wallet's key belongs to the
 * withdrawal worker alone.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError, errorMessage } from "../../chain/errors.js";
import { keystoreAddress } from "../../chain/signing/keystore.js";
import { loadExchangeTokens } from "../../ledger/assets/asset-registry.js";
import { readKillSwitchFile } from "../../ledger/kill-switch/kill-switch-file.js";
import { loadPolicyFile } from "../../ledger/policy/policy-file.js";
import { keystoreFiles, WALLETS_FOLDER } from "../../ledger/wallets/home-wallets.js";
import { loadNodeId, loadValidatorIdentity } from "../../node/consensus/signing/validator-key.js";
import { loadGenesis } from "../../node/settings/genesis.js";
import type { ConfigFault } from "../../runtime/config/config.js";
import { settingFaults } from "../../runtime/config/read-together.js";
import {
  readApiKeyFile,
  readPassphraseFile,
  readSecretFile,
} from "../../runtime/config/secret-file.js";
import { CliError, fileCause, systemCode } from "../errors.js";
import { homePaths, type HomePaths } from "./home.js";
import { kitNodes } from "./network/kit-nodes.js";
import { parseAccountXpub, parseKeyFile } from "./keys/wallet-keys.js";

/** What is wrong with the files of a home; empty for one that does not exist yet. */
export function homeFileFaults(paths: HomePaths): readonly ConfigFault[] {
  const text = (file: string): string => readFileSync(file, "utf8");
  const wallets = walletFiles(paths);
  const exchange: readonly (readonly [string, (file: string) => unknown])[] = [
    ...wallets.files.flatMap(({ keystore, passphrase }) => [
      [keystore, (file: string) => keystoreAddress(text(file))] as const,
      [passphrase, readPassphraseFile] as const,
    ]),
    [paths.depositXpub, (file) => parseAccountXpub(text(file), file)],
    [paths.apiKey, readApiKeyFile],
    [paths.postgresPassword, readSecretFile],
    [paths.killSwitch, readKillSwitchFile],
    [paths.faucetKey, (file) => parseKeyFile(text(file), file)],
  ];
  const ofNodes = nodeHomes(paths).flatMap((home) => {
    const own = homePaths(home);
    return [
      [own.genesis, loadGenesis],
      [own.validatorKey, loadValidatorIdentity],
      [own.nodeKey, loadNodeId],
    ] as const;
  });
  return [
    ...settingFaults(() => loadExchangeTokens(paths.home)),
    ...(existsSync(paths.policy) ? settingFaults(() => loadPolicyFile(paths.policy)) : []),
    ...wallets.faults,
    ...[...exchange, ...ofNodes].flatMap(([file, read]) => faultOf(file, read)),
  ];
}

/** Keystores of the home, or why it cannot be told which there are. */
function walletFiles({ home }: HomePaths): {
  readonly files: ReturnType<typeof keystoreFiles>;
  readonly faults: readonly ConfigFault[];
} {
  try {
    return { files: keystoreFiles(home), faults: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const allowed = `a folder that this user may read: ${errorMessage(error)}`;
    const file = join(home, WALLETS_FOLDER);
    return { files: [], faults: [{ file, key: "(whole folder)", value: "unusable", allowed }] };
  }
}

/** Homes of the kit's nodes; where the genesis does not tell them, that is found in the kit's own. */
function nodeHomes({ home }: HomePaths): readonly string[] {
  try {
    return kitNodes(home).map((node) => node.home);
  } catch (error) {
    if (error instanceof CliError) return [home];
    throw error;
  }
}

/** The fault of one file; its content, which may be a secret, is never shown. */
function faultOf(file: string, read: (file: string) => unknown): readonly ConfigFault[] {
  if (!existsSync(file)) return [];
  try {
    read(file);
    return [];
  } catch (error) {
    const reason = error instanceof AppError ? errorMessage(error) : fileCause(error);
    const isOurs = error instanceof AppError || systemCode(error) !== "UNKNOWN";
    if (!isOurs) throw error;
    const allowed = `the file as it was written, by a release that this one knows: ${reason}`;
    return [{ file, key: "(whole file)", value: "unusable", allowed }];
  }
}

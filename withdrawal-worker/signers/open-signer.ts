/** A wallet's signer as the settings name it, behind the signer's own rules. */
import { join } from "node:path";
import { readKillSwitchFile } from "../../ledger/kill-switch/kill-switch-file.js";
import { killSwitchPath, policyPath } from "../../ledger/policy/policy-paths.js";
import { PolicyFile } from "../../ledger/policy/policy-file.js";
import type { HomeWallet } from "../../ledger/wallets/home-wallets.js";
import { ConfigError } from "../../runtime/config/config.js";
import type { WorkerConfig } from "../config.js";
import { createCommandSigner } from "./command-signer.js";
import { openKeystore } from "./keystore-holder.js";
import { PolicySigner, type SignerRules } from "./policy-signer.js";
import type { KeyHolder } from "./signer-port.js";
import { createWeb3Signer } from "./web3signer.js";

/** What a signer is made of beside the settings. */
export interface SignerParts
  extends Pick<
    SignerRules,
    "chainId" | "limits" | "totals" | "own" | "contractOf" | "depositAddressAt"
  > {
  readonly home: string;
  readonly settings: WorkerConfig["signer"];
  /** Files and address of the wallet. */
  readonly wallet: HomeWallet;
}

/** A signer and what ends it. */
export interface OpenedSigner {
  readonly signer: PolicySigner;
  readonly close: () => Promise<void>;
}

/**
 * Opens the signer of a wallet; asks nobody yet.
 * @throws ConfigError for settings that do not fit each other; faults of the keystore
 */
export function openSigner(parts: SignerParts): OpenedSigner {
  const { home, chainId, limits, totals, own, contractOf, depositAddressAt } = parts;
  const holder = openHolder(parts);
  const policy = new PolicyFile(policyPath(home));
  const signer = new PolicySigner(holder, {
    chainId,
    limits,
    totals,
    own,
    contractOf,
    depositAddressAt,
    readPolicy: () => policy.read(),
    readKillSwitch: () => readKillSwitchFile(killSwitchPath(home)),
  });
  const close = async () => {
    await holder.close();
    // What no bound asks for must not make the end of a worker a failed one.
    await totals.flush().catch(() => undefined);
  };
  return { signer, close };
}

function openHolder({ home, settings, wallet }: SignerParts): KeyHolder {
  const { address } = wallet;
  const timeoutMs = settings["timeout-ms"];
  const { kind, url, command } = settings;
  if (kind === "web3signer") {
    if (url === "") throw missing(home, "signer.url", "the URL of Web3Signer");
    return createWeb3Signer({ url, timeoutMs, address });
  }
  if (kind === "command") {
    if (command.length === 0) throw missing(home, "signer.command", "a program and its arguments");
    return createCommandSigner({ command, timeoutMs, address });
  }
  return openKeystore(wallet);
}

function missing(home: string, key: string, allowed: string): ConfigError {
  const file = join(home, "config", "worker.toml");
  return new ConfigError([{ file, key, value: "nothing", allowed }]);
}

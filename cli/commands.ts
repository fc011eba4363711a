/** `causeway init`, `status`, `doctor` and `migrate`: each returns its exit code. */
import { toChecksumAddress } from "../chain/address.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { systemClock } from "../runtime/clock.js";
import { type CommandContext, printJson } from "./command-context.js";
import { runDoctorChecks } from "./doctor.js";
import { createHomeFolders, homePaths } from "./home.js";
import { lockHome } from "./home-lock.js";
import { initHome } from "./init.js";
import { KIT_CONFIG_FILES, loadKitConfig } from "./kit-config.js";
import { readKitStatus } from "./kit-status.js";
import { withLedger } from "./ledger-tools.js";
import { writeRoleHomes } from "./role-homes.js";
import { formatStatusLine } from "./status-line.js";

/** `causeway init`: makes the home, or completes it; a complete one is left as it is. */
export async function runInit(
  context: CommandContext,
  options: { readonly blockIntervalMs?: number; readonly roleHomes?: string },
): Promise<number> {
  const paths = homePaths(context.home);
  await createHomeFolders(paths);
  const lock = await lockHome(paths.lock, paths.home);
  try {
    const result = await initHome({
      paths,
      portOffset: context.portOffset,
      network: "testnet",
      blockIntervalMs: options.blockIntervalMs,
      configFiles: KIT_CONFIG_FILES,
      clock: systemClock,
    });
    if (options.roleHomes !== undefined) await writeRoleHomes(paths, options.roleHomes);
    if (context.json) {
      printJson(context, { home: paths.home, ...result });
      return 0;
    }
    const words = result.created ? "A new home is written" : "The home is complete already";
    context.print(`${words}: ${paths.home}`);
    context.print(`  faucet      ${toChecksumAddress(result.faucetAddress)}`);
    context.print(`  hot wallet  ${toChecksumAddress(result.hotWalletAddress)}`);
    return 0;
  } finally {
    await lock.release();
  }
}

/** `causeway status`: 0 when every part is ready, else 1. */
export async function runStatus(context: CommandContext): Promise<number> {
  const { endpoints } = loadKitConfig(context);
  const { evm, close } = nodeClient(endpoints.jsonRpcUrl);
  try {
    const probe = { endpoints, evm, clock: systemClock };
    const status = await readKitStatus(probe, context.signal);
    const ready = status.parts.every((part) => part.ready);
    if (context.json) printJson(context, { ready, ...status });
    else {
      context.print(formatStatusLine({ ...status, parts: [] }));
      for (const part of status.parts) {
        const state = part.ready ? "ready" : `NOT READY: ${part.reason}`;
        context.print(`  ${part.part.padEnd(18)} ${part.url.padEnd(24)} ${state}`);
      }
    }
    return ready ? 0 : 1;
  } finally {
    close();
  }
}

/** `causeway doctor`: 0 when nothing failed, else 1; warnings count only with `strict`. */
export async function runDoctor(
  context: CommandContext,
  options: { readonly strict: boolean },
): Promise<number> {
  const closers: (() => void)[] = [];
  const findings = await runDoctorChecks({
    paths: homePaths(context.home),
    env: context.env,
    portOffset: context.portOffset,
    clock: systemClock,
    signal: context.signal,
    createEvm: (url) => {
      const { evm, close } = nodeClient(url);
      closers.push(close);
      return evm;
    },
  });
  for (const close of closers) close();
  const failed = findings.some(
    ({ severity }) => severity === "fail" || (options.strict && severity === "warn"),
  );
  if (context.json) printJson(context, { ok: !failed, checks: findings });
  else {
    for (const { id, severity, value, remedy } of findings) {
      context.print(`  ${severity.toUpperCase().padEnd(5)} ${id.padEnd(18)} ${value}`);
      if (remedy !== "") context.print(`        ${"".padEnd(18)} -> ${remedy}`);
    }
    context.print(failed ? "Something is wrong; each line above says what to do." : "All is well.");
  }
  return failed ? 1 : 0;
}

/** `causeway migrate`: brings the ledger's tables to this version; safe to run again. It needs the node,
 * because a ledger belongs to one chain. */
export async function runMigrate(context: CommandContext): Promise<number> {
  await withLedger(context, async () => undefined);
  if (context.json) printJson(context, { migrated: true });
  else context.print("The ledger's tables are up to date.");
  return 0;
}

function nodeClient(url: string): { evm: EvmClient; close: () => void } {
  const rpc = createJsonRpcClient({ url });
  return { evm: createEvmClient(rpc), close: () => rpc.close() };
}

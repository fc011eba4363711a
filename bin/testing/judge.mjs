/** Builds the foreign programs that judge this project: rosetta-cli, CometBFT, grpcurl; needs Go. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "../setup/child.mjs";
import { SetupError } from "../setup/setup-error.mjs";
import { withLock } from "../setup/lock.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Lowest version of Go: the first that knows the `tool` directive. */
const MINIMUM_GO = [1, 24];

/** Modules from an empty cache on a slow line, then a build from nothing on a busy machine. */
const BUILD_TIMEOUT_MS = 900_000;

/** Progress lines: no command is silent for longer than 30 s. */
const REPORT_MS = 20_000;

/** Where the programs lie; ignored by git. */
const FOLDER = join(ROOT, ".cache", "judge");

/** Each has a module of its own that pins the version; `go install` of rosetta-cli is refused. */
const PROGRAMS = {
  "rosetta-cli": {
    version: "v0.10.4",
    module: join(ROOT, "test", "mesh", "judge"),
    package: "github.com/coinbase/rosetta-cli",
  },
  cometbft: {
    version: "v0.38.17",
    module: join(ROOT, "test", "network", "light"),
    package: "github.com/cometbft/cometbft/cmd/cometbft",
  },
  "rpc-client": {
    version: "v0.38.17",
    module: join(ROOT, "test", "network", "rpc-client"),
    package: ".",
  },
  grpcurl: {
    version: "v1.9.3",
    module: join(ROOT, "test", "network", "grpcurl"),
    package: "github.com/fullstorydev/grpcurl/cmd/grpcurl",
  },
};

/**
 * Builds rosetta-cli, Coinbase's own judge of Data and Construction APIs.
 * @param {{say: (text: string) => void}} options
 * @returns {Promise<string>} path of the program
 * @throws {SetupError}
 */
export function buildJudge({ say }) {
  return buildProgram("rosetta-cli", say);
}

/**
 * Builds CometBFT's program, for its light client.
 * @param {{say: (text: string) => void}} options
 * @returns {Promise<string>} path of the program
 * @throws {SetupError}
 */
export function buildLightClient({ say }) {
  return buildProgram("cometbft", say);
}

/**
 * Builds the judge of the consensus RPC: CometBFT's Go client.
 * @param {{say: (text: string) => void}} options
 * @returns {Promise<string>} path of the program
 * @throws {SetupError}
 */
export function buildRpcClient({ say }) {
  return buildProgram("rpc-client", say);
}

/**
 * Builds grpcurl, which people ask gRPC servers with.
 * @param {{say: (text: string) => void}} options
 * @returns {Promise<string>} path of the program
 * @throws {SetupError}
 */
export function buildGrpcurl({ say }) {
  return buildProgram("grpcurl", say);
}

/** Whether Go is here at all. */
export function hasGo() {
  return spawnSync("go", ["env", "GOVERSION"]).status === 0;
}

/** In a second where Go's own cache has it. */
async function buildProgram(name, say) {
  assertGo(name);
  const { version, module, package: path } = PROGRAMS[name];
  const program = join(FOLDER, name);
  mkdirSync(FOLDER, { recursive: true });
  let output = "";
  const ticker = setInterval(() => say(`still building ${name}`), REPORT_MS);
  const code = await withLock(join(FOLDER, "build.lock"), { say }, () => {
    say(`building ${name} ${version}`);
    return runChild({
      what: `the build of ${name}`,
      command: "go",
      // -mod=readonly: nothing but what go.sum names.
      args: ["build", "-buildvcs=false", "-mod=readonly", "-o", program, path],
      cwd: module,
      recordPath: join(FOLDER, "build-child.json"),
      timeoutMs: BUILD_TIMEOUT_MS,
      onOutput(text) {
        output += text;
      },
    });
  }).finally(() => clearInterval(ticker));
  if (code !== 0) throw new SetupError(`${name} cannot be built:\n${output.slice(-4_000)}`);
  return program;
}

function assertGo(name) {
  const wanted = `Go ${MINIMUM_GO.join(".")} or newer is needed to build ${name}`;
  const found = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" });
  if (found.error !== undefined || found.status !== 0) {
    throw new SetupError(`${wanted}, and there is no "go" here: install it from https://go.dev/dl`);
  }
  const [major = 0, minor = 0] = found.stdout.replace("go", "").split(".").map(Number);
  if (major < MINIMUM_GO[0] || (major === MINIMUM_GO[0] && minor < MINIMUM_GO[1])) {
    throw new SetupError(`${wanted}; this is ${found.stdout.trim()}`);
  }
}

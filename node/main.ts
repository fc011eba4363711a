/** Entry of the node's process. */
import { runProcess } from "../runtime/process/lifecycle.js";
import { NODE_PROCESS } from "./compose/process.js";

runProcess(NODE_PROCESS);

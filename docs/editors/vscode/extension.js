// SPDX-License-Identifier: Apache-2.0
// Starts `tdslc --lsp`. Without vscode-languageclient (npm install) the extension has colours alone.
const vscode = require("vscode");

let client;

function activate() {
  let library;
  try {
    library = require("vscode-languageclient/node");
  } catch {
    vscode.window.showInformationMessage("TDSL: colours alone; 'npm install' in the folder of the extension brings the language server's client.");
    return undefined;
  }
  const settings = vscode.workspace.getConfiguration("tdsl");
  const server = { command: settings.get("server", "tdslc"), args: ["--lsp", ...settings.get("arguments", [])] };
  client = new library.LanguageClient("tdsl", "TDSL", server, { documentSelector: [{ language: "tdsl" }] });
  return client.start();
}

function deactivate() {
  return client === undefined ? undefined : client.stop();
}

module.exports = { activate, deactivate };

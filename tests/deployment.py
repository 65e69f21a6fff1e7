#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""deployment.py build [schemas] : what contrib/ has for containers, Kubernetes and rpm is whole: files, images, volumes and services that are named exist, the
configurations are valid, and all versions are that of the Makefile. docker-compose and kubectl are asked as well where they are here. With the word schemas
kustomize and kubeconform come from the Go proxy instead, and the schemas of Kubernetes from PyPI, all of them pinned: each object that `kubectl apply -k` would
send, and each of the examples, is held against its schema. Nothing is started."""
import email.utils
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import yaml  # Debian: python3-yaml

BUILD = sys.argv[1]
COMPOSE, KUBERNETES = "contrib/compose", "contrib/kubernetes"
SCHEMAS, OF = "kubernetes-validate==1.34.1", "v1.34.0-local-strict"
KUSTOMIZE, KUBECONFORM = "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1", "github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0"
passed = failed = 0


def verdict(right, text):
    global passed, failed
    if right:
        passed += 1
    else:
        failed += 1
        print("FAILED: " + text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(*argv, **environment):
    """(status, all that it printed)"""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout


def is_valid(path):
    status, said = run(BUILD + "/redlockd", "--config", path, "--check-config")
    verdict(status == 0 and ", quorum 2," in said, "%s: %s" % (path, said))


def check_versions(version):
    places = {
        "debian/changelog": r"^redlockd \(([^)]*)\)",
        "CHANGELOG.md": r"^## \[([^]]*)\]",
        "client/python/pyproject.toml": r'^version = "([^"]*)"',
        "client/python/redlockd/__init__.py": r'^__version__ = "([^"]*)"',
        "client/node/package.json": r'^  "version": "([^"]*)"',
        "client/node/package-lock.json": r'"name": "redlockd",\n +"version": "([^"]*)"',
        "client/java/pom.xml": r"<artifactId>redlockd-client</artifactId>\s*<version>([^<]*)",
        "client/java/README.md": r"io\.redlockd:redlockd-client:([0-9.]*)",
        "client/java/shedlock/pom.xml": r"<groupId>io\.redlockd</groupId>\s*<artifactId>[^<]*</artifactId>\s*<version>([^<]*)",
        "client/java/spring/pom.xml": r"<groupId>io\.redlockd</groupId>\s*<artifactId>[^<]*</artifactId>\s*<version>([^<]*)",
        "client/java/testing/pom.xml": r"<groupId>io\.redlockd</groupId>\s*<artifactId>[^<]*</artifactId>\s*<version>([^<]*)",
        "client/go/README.md": r"go get github\.com/redlockd/redlockd/client/go@v(\S+)",
        "client/go/gocron/go.mod": r"^\s*github\.com/redlockd/redlockd/client/go v(\S+)$",
        "contrib/rpm/redlockd.spec": r"^Version: +(\S+)",
        COMPOSE + "/compose.yaml": r"image: redlockd:(\S+)",
        KUBERNETES + "/kustomization.yaml": r"newTag: (\S+)",
        KUBERNETES + "/examples/sidecar.yaml": r"image: \S+/redlockd:(\S+)",
    }
    for path, pattern in places.items():
        found = re.findall(pattern, read(path), re.M)
        if path in ("debian/changelog", "CHANGELOG.md"):
            found = found[:1]
        verdict(found and set(found) == {version}, "%s names %s, and the Makefile %s" % (path, found or "no version", version))
    date = re.search(r"^ -- .*>  (.*)$", read("debian/changelog"), re.M)[1]
    verdict(email.utils.parsedate_to_datetime(date).timestamp() < time.time(), "debian/changelog: %s is to come: packages built before then are not reproducible" % date)
    for program in ("redlockd", "redlock"):
        status, said = run(os.path.join(BUILD, program), "--version")
        verdict(status == 0 and said == "%s %s\n" % (program, version), "%s --version says %r" % (program, said))


def named_in(pod):
    """The names of the volumes that containers of a pod mount, and of those that it has."""
    mounts = {mount["name"] for container in pod.get("initContainers", []) + pod["containers"] for mount in container.get("volumeMounts", [])}
    return mounts, {volume["name"] for volume in pod.get("volumes", [])}


def check_compose():
    path = COMPOSE + "/compose.yaml"
    whole = yaml.safe_load(read(path))
    services = whole["services"]
    for name, service in services.items():
        verdict(set(service.get("depends_on", [])) <= set(services), "%s: %s depends on what is no service" % (path, name))
        verdict(service["cap_drop"] == ["ALL"] and service["read_only"], "%s: %s may write or has capabilities" % (path, name))
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            verdict(os.path.isfile(os.path.join(COMPOSE, source)) if source.startswith(".") else source in whole["volumes"],
                    "%s: %s mounts %s, which is not there" % (path, name, source))
        if "build" in service:
            context = os.path.normpath(os.path.join(COMPOSE, service["build"]["context"]))
            verdict(context == "." and os.path.isfile(service["build"]["dockerfile"]), "%s: %s is built from what is not there" % (path, name))
    hosts = [volume for service in services.values() for volume in service.get("volumes", []) if volume.endswith(":/run/redlockd")]
    verdict(len(hosts) == 3 == len(set(hosts)), "%s: hosts share a socket" % path)
    nodes = yaml.safe_load(read(COMPOSE + "/redlockd.yaml"))["redis"]["nodes"]
    verdict({node.split(":")[0] for node in nodes} == set(services["host1"]["depends_on"]),
            "%s/redlockd.yaml does not name the servers of compose.yaml" % COMPOSE)
    is_valid(COMPOSE + "/redlockd.yaml")
    if shutil.which("docker-compose"):
        status, said = run("docker-compose", "-f", path, "config", "-q")
        verdict(status == 0, "docker-compose config: " + said)
    else:
        print("skipped: docker-compose config: it is not here")


def check_kubernetes():
    base = yaml.safe_load(read(KUBERNETES + "/kustomization.yaml"))
    generated = {maker["name"] for maker in base["configMapGenerator"]}
    paths = base["resources"] + [name for maker in base["configMapGenerator"] for name in maker["files"]]
    for path in paths:
        verdict(os.path.isfile(os.path.join(KUBERNETES, path)), "%s: there is no %s" % (KUBERNETES, path))
    is_valid(KUBERNETES + "/redlockd.yaml")
    examples = ["examples/" + name for name in sorted(os.listdir(KUBERNETES + "/examples"))]
    sockets = set()
    for path in base["resources"] + examples:
        for thing in yaml.safe_load_all(read(os.path.join(KUBERNETES, path))):
            if thing["kind"] not in ("DaemonSet", "Deployment"):
                continue
            pod, labels = thing["spec"]["template"]["spec"], thing["spec"]["template"]["metadata"]["labels"]
            mounted, has = named_in(pod)
            verdict(mounted == has, "%s: it mounts %s, and has %s" % (path, sorted(mounted), sorted(has)))
            verdict(thing["spec"]["selector"]["matchLabels"] == labels, "%s: it does not select its own pods" % path)
            sockets |= {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
            maps = {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
            verdict(maps <= generated, "%s: there is no ConfigMap %s" % (path, maps))
    verdict(sockets == {"/run/redlockd"}, "%s: the socket is at %s of a node" % (KUBERNETES, sorted(sockets)))
    user = re.search(r"^USER (\d+):\1$", read("Containerfile"), re.M)
    verdict(user and '-o, "%s", -g, "%s"' % (user[1], user[1]) in read(KUBERNETES + "/daemonset.yaml")
            and "fsGroup: " + user[1] in read(KUBERNETES + "/examples/sidecar.yaml"),
            "Containerfile and %s name different users" % KUBERNETES)
    if shutil.which("kubectl"):
        status, said = run("kubectl", "kustomize", KUBERNETES)
        verdict(status == 0 and len(list(yaml.safe_load_all(said))) == 3, "kubectl kustomize: " + said)
    else:
        print("skipped: kubectl kustomize: it is not here")


def fetched(tools):
    """Whether kustomize, kubeconform and the schemas are there; what cannot be reached is skipped by name."""
    for name, module in (("kustomize", KUSTOMIZE), ("kubeconform", KUBECONFORM)):
        if not os.path.exists(os.path.join(tools, name)):
            if not shutil.which("go"):
                print("skipped: schemas of Kubernetes: no go is here")
                return False
            status, said = run("go", "install", module, GOBIN=tools, GOFLAGS="-mod=mod")
            if status:
                print("skipped: schemas of Kubernetes: %s does not come from the Go proxy: %s" % (module, said.strip().rpartition("\n")[2]))
                return False
    if not os.path.isdir(tools + "/lib"):
        install = (tools + "/bin/pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "--no-deps", SCHEMAS)
        for argv in ((sys.executable, "-m", "venv", tools), install):
            status, said = run(*argv)
            if status:
                shutil.rmtree(tools + "/lib", ignore_errors=True)
                print("skipped: schemas of Kubernetes: %s does not come from PyPI: %s" % (SCHEMAS, said.strip().rpartition("\n")[2]))
                return False
    return True


def write_schemas(tools):
    """The schemas of these kinds, each with all definitions in itself: kubeconform does not follow the addresses that they have in the package."""
    folder = glob.glob(tools + "/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema/" + OF)[0]
    definitions = json.loads(read(folder + "/_definitions.json"))["$defs"]
    os.makedirs(tools + "/schemas", exist_ok=True)
    for name in ("namespace-v1", "configmap-v1", "service-v1", "daemonset-apps-v1", "deployment-apps-v1"):
        schema = json.loads(read("%s/%s.json" % (folder, name)).replace("/api/_definitions.json#", "#"))
        with open("%s/schemas/%s.json" % (tools, name), "w", encoding="utf-8") as file:
            json.dump(dict(schema, **{"$defs": definitions}), file)


def check_schemas():
    tools = os.path.abspath(os.path.join(BUILD, "deployment"))
    if not fetched(tools):
        return
    write_schemas(tools)
    conform = (tools + "/kubeconform", "-strict", "-summary", "-schema-location", tools + "/schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
    rendered, planted = tools + "/rendered.yaml", tools + "/planted.yaml"
    status, said = run(tools + "/kustomize", "build", KUBERNETES)
    verdict(status == 0, "kustomize: " + said)
    with open(rendered, "w", encoding="utf-8") as file:
        file.write(said)
    status, said = run(*conform, rendered, KUBERNETES + "/examples")
    verdict(status == 0 and "Valid: 6, Invalid: 0, Errors: 0, Skipped: 0" in said, "kubeconform: " + said)
    for right, wrong in (("timeoutSeconds", "timeoutSecond"), ("hostPath:", "hostPath: 7\n        #"), ("kind: DaemonSet", "kind: DaemonSets")):
        with open(planted, "w", encoding="utf-8") as file:
            file.write(read(rendered).replace(right, wrong))
        verdict(run(*conform, planted)[0] != 0, "kubeconform does not find %r in the place of %r" % (wrong, right))


def check_parts():
    if not shutil.which("dpkg-query"):
        print("skipped: contrib/sbom.sh: no dpkg-query is here")
        return
    status, said = run("sh", "contrib/sbom.sh")
    verdict(status == 0, "contrib/sbom.sh: " + said)
    parts = json.loads(said)["components"]
    installed = run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}@${Version}\n")[1].splitlines()
    verdict(sorted(part["name"] + "@" + part["version"] for part in parts) == sorted(line[10:] for line in installed if line.startswith("installed ")),
            "contrib/sbom.sh does not list what dpkg does")
    verdict(all(re.fullmatch(r"pkg:deb/debian/[a-z0-9.%A-F-]+@[A-Za-z0-9.%-]+\?arch=[a-z0-9]+", part["purl"]) for part in parts),
            "contrib/sbom.sh: a purl is none")


if "schemas" in sys.argv[2:]:
    check_schemas()
else:
    check_versions(re.search(r"^VERSION := (\S+)", read("Makefile"), re.M)[1])
    check_compose()
    check_kubernetes()
    check_parts()
print("%d passed, %d failed" % (passed, failed))
sys.exit(1 if failed else 0)

#!/bin/sh
# Take a snapshot on every node once a day, keep the last seven, and report missing snapshots.
# Typesense reports success even for a folder that it cannot write to, so check that the files exist.
set -u
while true; do
    name=$(date -u +%Y%m%dT%H%M%SZ)
    for node in $NODES; do
        curl -fsS -m 600 -o /dev/null -X POST -H "X-TYPESENSE-API-KEY: $TYPESENSE_API_KEY" \
            "http://$node:8108/operations/snapshot?snapshot_path=/snapshots/$name" || echo "$node: no snapshot $name" >&2
        if [ -d "/snapshots/$node/$name/state" ]; then
            echo "$node: snapshot $name"
            ls -1d "/snapshots/$node"/2* | sort -r | tail -n +8 | xargs -r rm -rf
        else
            echo "$node: snapshot $name has no files" >&2
        fi
    done
    sleep 86400
done

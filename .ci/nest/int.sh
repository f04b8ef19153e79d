W=/work/wt/wire/Integrations/.build
N=/work/wt/nest
maps=(); for m in $(find $W/debug/ -maxdepth 2 -name module.modulemap) $(find $W/checkouts -path '*Sources*include/module.modulemap' ! -path '*Tests*'); do maps+=(-Xcc -fmodule-map-file=$m); done
incs=(); for d in $(find $W/checkouts -type d -path '*Sources/C*/include' ! -path '*Tests*'); do incs+=(-I $d); done
mkdir -p /tmp/nest/imod
M=$(swift build --package-path $N --show-bin-path)/Modules
for t in LoopbackOrigin CacheMetrics CachingHTTPClient RedisStorage; do
  swiftc -emit-module -emit-module-path /tmp/nest/imod/$t.swiftmodule -enable-testing -parse-as-library -swift-version 6 -module-name $t -package-name integrations -I $M -I /tmp/nest/imod -I $W/debug/Modules "${incs[@]}" "${maps[@]}" $(find $N/Integrations/Sources/$t -name '*.swift') 2>&1 | grep -E "error|warning:" | grep -v "^ " | sort -u | head -15; echo "$t ${PIPESTATUS[0]}"
done
for t in CachingHTTPClientTests RedisStorageTests CacheMetricsTests ConformanceTests; do
  swiftc -typecheck -parse-as-library -swift-version 6 -module-name $t -package-name integrations -I $M -I /tmp/nest/imod -I $W/debug/Modules "${incs[@]}" "${maps[@]}" $(find -L $N/Integrations/Tests/$t -name '*.swift') 2>&1 | grep -E "error" | grep -v "^ " | sort -u | head -15; echo "$t ${PIPESTATUS[0]}"
done
